"""Whether a provider has refused a request for the nudge in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from langchain_retrying.errors import causes_of

_INVALID_REQUEST = (400, 422)
_SERVER_ERROR = 500
# What servers with strict chat templates say of turns they don't expect, with a 500 or, in the same
# process, with no status at all: https://github.com/ggml-org/llama.cpp/issues/19851
_OF_TURNS = re.compile(r"\broles?\b|alternat|template|jinja", re.IGNORECASE)


def is_refusal(error: Exception) -> bool:
    """Whether an exception of a nudged request says that the provider does not take such a one."""
    return any(_refuses(cause) for cause in causes_of(error))


def _refuses(error: BaseException) -> bool:
    codes = [code for code in _codes(error) if isinstance(code, int)]
    if any(code in _INVALID_REQUEST for code in codes):
        return True
    return all(code >= _SERVER_ERROR for code in codes) and bool(_OF_TURNS.search(str(error)))


def _codes(error: Any) -> Iterator[Any]:
    """What may be an HTTP status."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore's
        yield (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
    yield getattr(response, "status_code", None)
    yield getattr(error, "status_code", None)
    yield getattr(error, "code", None)
