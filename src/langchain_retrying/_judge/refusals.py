"""Whether a provider has refused a request for the nudge in it. Pure."""

from __future__ import annotations

import re
from contextlib import suppress

from langchain_retrying._judge.exceptions import causes_of, statuses_in

_INVALID_REQUEST = frozenset({400, 422})
_SERVER_ERROR = 500
# What servers with strict chat templates say of turns they don't expect, with a 500:
# https://github.com/ggml-org/llama.cpp/issues/19851
_OF_TURNS = re.compile(r"\broles?\b|alternat|template|jinja", re.IGNORECASE)
# The same from a model in this process, which has no status and so needs to say more.
_OF_A_TEMPLATE = re.compile(
    r"\broles?\b.*alternat|alternat.*\broles?\b|chat.?template|jinja|TemplateError",
    re.IGNORECASE | re.DOTALL,
)


def is_refusal(error: Exception) -> bool:
    """Whether an exception of a nudged request says that the provider does not take such a one."""
    with suppress(Exception):  # of an exception that can't be looked at
        statuses = statuses_in(error)
        if not _INVALID_REQUEST.isdisjoint(statuses):
            return True
        words = _OF_TURNS if statuses else _OF_A_TEMPLATE
        texts = [f"{type(cause).__name__}: {cause}" for cause in causes_of(error)]
        return all(status >= _SERVER_ERROR for status in statuses) and any(map(words.search, texts))
    return False
