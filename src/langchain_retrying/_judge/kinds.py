"""The kinds of reply, and the verdict: a kind with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ReplyKind(str, Enum):
    """What a chat model's reply amounts to.

    The four kinds other than `ANSWER` carry nothing that a consumer can use; they differ by why.
    """

    ANSWER = "answer"
    """Visible text, a tool call, a refusal in words, audio, an image, a paused turn ..."""
    BLANK = "blank"
    """Ended for no stated reason, for a normal one or for one that is not known."""
    TRUNCATED = "truncated"
    """The output budget was spent, mostly on reasoning."""
    BLOCKED = "blocked"
    """The provider withheld it: content filter, safety, refusal, guardrail."""
    MALFORMED = "malformed"
    """A tool call is missing: the provider dropped a malformed one, or announced one that did not
    come, or the policy requires a forced one and text came instead."""


@dataclass(frozen=True)
class Verdict:
    """A judgement and its evidence."""

    kind: ReplyKind
    finish_reason: str | None = None
    """The provider's own word that decided the kind, else the last one it gave; None if none."""
    finish_reason_key: str | None = None
    """Where in the metadata it stood, such as `stop_reason`."""
    seen: frozenset[str] = frozenset()
    """What the reply held: `text`, `blank text`, `reasoning`, `server tools`, `tool calls`, and
    types of blocks or keys of `additional_kwargs` that are usable as they are."""

    @property
    def is_answer(self) -> bool:
        """Whether the reply carries something that a consumer can use."""
        return self.kind is ReplyKind.ANSWER


NOTHING = Verdict(ReplyKind.BLANK)
"""The verdict on a reply that did not come at all."""

ANSWER = Verdict(ReplyKind.ANSWER)
"""The verdict on an answer that needs no evidence."""
