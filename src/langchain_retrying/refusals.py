"""Whether a provider has refused a request for what a remedy added to it. Pure."""

from __future__ import annotations

from typing import Any

_INVALID_REQUEST = (400, 422)


def is_refusal(error: Exception) -> bool:
    """Whether an exception of the inner model says that the provider found the request invalid."""
    cause: Any = error
    while cause is not None:  # langchain-google-genai raises its own error from the client's
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore's
            response = response.get("ResponseMetadata") or {}
            code = response.get("HTTPStatusCode")
        else:
            code = getattr(response, "status_code", None)
        codes = (code, getattr(cause, "status_code", None), getattr(cause, "code", None))
        if any(code in _INVALID_REQUEST for code in codes if isinstance(code, int)):
            return True
        cause = cause.__cause__
    return False
