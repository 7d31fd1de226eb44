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

_KEYS = (
    "finish_reason",  # OpenAI chat and compatible, Gemini, Cohere, Mistral, Groq
    "stop_reason",  # Anthropic
    "done_reason",  # Ollama
    "stopReason",  # Bedrock Converse
    "status",  # OpenAI Responses
)
_NESTED_KEYS = (
    ("incomplete_details", "reason"),  # OpenAI Responses
    ("prompt_feedback", "block_reason"),  # Gemini
)


def reasons_in(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every finish reason in `response_metadata`, `generation_info` or `llm_output`, by its key."""
    for key in _KEYS:
        reason = metadata.get(key)
        if isinstance(reason, str) and reason:
            yield key, reason
    for outer, key in _NESTED_KEYS:
        details = metadata.get(outer)
        if isinstance(details, Mapping):
            reason = details.get(key)
            if isinstance(reason, str) and reason:
                yield f"{outer}.{key}", reason


@lru_cache(maxsize=256)
def normalise(reason: str) -> End:
    """The meaning of one finish reason, whoever spelt it."""
    letters = _NOT_A_LETTER.sub("", reason.lower())
    for end, words in _WORDS:
        if words.search(letters):
            return end
    return End.OTHER
