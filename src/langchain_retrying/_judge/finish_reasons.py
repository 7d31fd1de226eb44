"""What a provider says about why a reply ended, in one vocabulary for all integrations.

Spelling differs in case and separators (`MAX_TOKENS`, `max_tokens`, `maxTokens`); streams repeat
a reason (`stopstop`); gateways compose them (`function_call_filter: MALFORMED_FUNCTION_CALL`).
So a reason is reduced to its letters and searched for known words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from langchain_retrying._judge.kinds import ReplyKind

# The first that matches decides: a filter may report the malformed call it dropped, and
# `status: incomplete` says less than the reason beside it.
_WORDS = {
    kind: re.compile(words)
    for kind, words in {
        ReplyKind.MALFORMED: "malformed|tooluse|(?<!max)toolcall|functioncall|toomanytool"
        "|invalidtool",
        ReplyKind.BLOCKED: "filter|safety|unsafe|refus|guardrail|modelarmor|jailbreak|block"
        "|prohibited|recitation|spii|sensitive|toxic|moderation|policy|^(language)+$",
        ReplyKind.TRUNCATED: "length|maxtoken|maxoutput|maxnewtoken|maxtoolcall|tokenlimit"
        "|errorlimit|contextwindow|budget|^(incomplete)+$",
        # The turn is not over: the caller must continue it, or poll for it.
        ReplyKind.ANSWER: "(pauseturn|queued|inprogress|requiresaction)$",
    }.items()
}
_NOT_A_LETTER = re.compile("[^a-z]")

# `finish_reason`, `stop_reason`, `done_reason`, `stopReason`, `completionReason`,
# `native_finish_reason` ...; OpenAI Responses has `status` and `incomplete_details.reason`, Gemini
# `prompt_feedback.block_reason`.
_KEY = ".*reason|status"
_OUTER_KEY = ".*(?:details|feedback)"


def reasons_in(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every finish reason in `response_metadata`, `generation_info` or `llm_output`, by its key."""
    for key, value in metadata.items():
        if isinstance(value, str):
            if value and _is_named(_KEY, key):
                yield key, value
        elif isinstance(value, Mapping) and _is_named(_OUTER_KEY, key):
            for inner_key, reason in reasons_in(value):
                yield f"{key}.{inner_key}", reason


@lru_cache(maxsize=1024)
def _is_named(words: str, key: Any) -> bool:
    return re.fullmatch(words, _letters(str(key))) is not None


@lru_cache(maxsize=256)
def kind_of_end(key: str, reason: str) -> ReplyKind:
    """What a reply is that holds nothing usable, and ended for this reason, found at this key."""
    letters = _letters(reason)
    if "unspecified" in letters:  # of Google's enumerations: none was set
        return ReplyKind.BLANK
    if "block" in key.lower():  # what blocks a prompt does so by any word
        return ReplyKind.BLOCKED
    return next((kind for kind, words in _WORDS.items() if words.search(letters)), ReplyKind.BLANK)


def _letters(name: str) -> str:
    return _NOT_A_LETTER.sub("", name.lower())
