"""What goes wrong in a probe, in a sentence that says what to do."""

from __future__ import annotations

import re
from typing import Any

_MEANINGS = {
    400: "The server takes the request for a bad one",
    401: "The server refuses the API key",
    403: "The API key may not use this model",
    404: "The server knows no such model or path (a base URL mostly ends in /v1)",
    408: "The server took too long",
    429: "The rate limit or the quota is used up",
}
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")
_LONGEST = 200  # characters of a provider's own words


class BadInputError(Exception):
    """What the user gave can't be used. Its text is a sentence for the user."""


class RunFailedError(Exception):
    """The run can't go on. Its text is a sentence for the user."""


def missing_variable(error: BaseException) -> str | None:
    """The environment variable that an error says should hold the key."""
    found = _VARIABLE.search(str(error))
    return found.group() if found else None


def missing_key(variable: str) -> str:
    """The sentence about an environment variable that is not set."""
    return f"No API key: the environment variable {variable} is not set."


def sentence(error: Exception) -> str:
    """What an exception of a call means, and its own words, shortened."""
    status = _status(error)
    if status is None and (variable := missing_variable(error)):
        return missing_key(variable)
    words = f"{type(error).__name__}: {own_words(error)}"
    if status is not None:
        failed = "The server failed" if status >= 500 else "The call failed"  # noqa: PLR2004 -- HTTP's own
        return f"{_MEANINGS.get(status, failed)} (status {status}, {words})."
    if "connect" in words.lower():
        return f"The server can't be reached ({words})."
    return f"The call failed ({words})."


def own_words(error: Exception) -> str:
    """The first line of an error that says something, shortened."""
    errors = getattr(error, "errors", None)  # pydantic's
    text = errors()[0]["msg"] if callable(errors) else str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    short = first if len(first) <= _LONGEST else f"{first[:_LONGEST]}..."
    return short.removesuffix(".")


def _status(error: Any) -> int | None:
    """The HTTP status, wherever a provider's client has it."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool):
                return status
    return None
