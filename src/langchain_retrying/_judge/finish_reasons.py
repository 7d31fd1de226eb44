"""What a provider says about why a reply ended, in one vocabulary for all integrations.

Spelling differs in case and separators (`MAX_TOKENS`, `max_tokens`, `maxTokens`); streams repeat
a reason (`stopstop`); gateways compose them (`function_call_filter: MALFORMED_FUNCTION_CALL`).
So a reason is reduced to its letters and searched for known words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any


class End(Enum):
    """Why a reply ended, as far as it matters to one that holds nothing usable."""

    MALFORMED = "malformed"
    """The provider dropped a tool call, or announced one that is not there."""
    BLOCKED = "blocked"
    """Content filter, safety, refusal, guardrail."""
    TRUNCATED = "truncated"
    """The output budget or the context window was spent."""
    PAUSED = "paused"
    """Not over: the caller must continue the turn or poll for it."""
    OTHER = "other"
    """A normal end, none stated, or one that is not known."""


# The first group that matches decides: a filter may report the malformed call it dropped, and
# `status: incomplete` says less than the reason beside it.
_WORDS: tuple[tuple[End, re.Pattern[str]], ...] = (
    (
        End.MALFORMED,
        re.compile("malformed|tooluse|(?<!max)toolcall|functioncall|toomanytool|invalidtool"),
    ),
    (
        End.BLOCKED,
        re.compile(
            "filter|safety|unsafe|refus|guardrail|modelarmor|jailbreak|block|prohibited"
            "|recitation|spii|sensitive|toxic|moderation|policy|^(language)+$"
        ),
    ),
    (
        End.TRUNCATED,
        re.compile(
            "length|maxtoken|maxoutput|maxnewtoken|maxtoolcall|tokenlimit|errorlimit"
            "|contextwindow|budget|^(incomplete)+$"
        ),
    ),
    (End.PAUSED, re.compile("(pauseturn|queued|inprogress|requiresaction)$")),
)
_NOT_A_LETTER = re.compile("[^a-z]")

# `finish_reason`, `stop_reason`, `done_reason`, `stopReason`, `completionReason`,
# `native_finish_reason` ...; OpenAI Responses has `status` and `incomplete_details.reason`, Gemini
# `prompt_feedback.block_reason`.
_KEY = re.compile(".*reason|status")
_OUTER_KEY = re.compile(".*(?:details|feedback)")


def reasons_in(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every finish reason in `response_metadata`, `generation_info` or `llm_output`, by its key."""
    for key, value in metadata.items():
        if isinstance(value, str):
            if value and _is_named(_KEY, key):
                yield key, value
        elif isinstance(value, Mapping) and _is_named(_OUTER_KEY, key):
            for inner_key, reason in value.items():
                if isinstance(reason, str) and reason and _is_named(_KEY, inner_key):
                    yield f"{key}.{inner_key}", reason


@lru_cache(maxsize=1024)
def _is_named(pattern: re.Pattern[str], key: Any) -> bool:
    return pattern.fullmatch(_letters(str(key))) is not None


def end_of(key: str, reason: str) -> End:
    """The meaning of a finish reason where it stands: what blocks a prompt does so by any word."""
    if "block" in key.lower() and "unspecified" not in reason.lower():
        return End.BLOCKED
    return normalise(reason)


@lru_cache(maxsize=256)
def normalise(reason: str) -> End:
    """The meaning of one finish reason, whoever spelt it."""
    letters = _letters(reason)
    if "unspecified" in letters:  # of Google's enumerations: none was set
        return End.OTHER
    for end, words in _WORDS:
        if words.search(letters):
            return end
    return End.OTHER


def _letters(name: str) -> str:
    return _NOT_A_LETTER.sub("", name.lower())
