"""Which policy fits what was seen. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from langchain_retrying._judge.reply import ReplyKind
from langchain_retrying._probe.figures import wilson_interval

_REMEDIES = (
    "remedies={ReplyKind.BLANK: [Nudge()], ReplyKind.MALFORMED: [Nudge()], "
    "ReplyKind.TRUNCATED: [RaiseOutputBudget()]}"
)


@dataclass(frozen=True)
class Seen:
    """What a suggestion is drawn from."""

    first_kinds: Counter[ReplyKind]
    """Of the replies to first attempts."""
    recovered: int
    """Calls whose retries brought an answer."""
    not_recovered: int
    """Calls that were retried in vain."""


@dataclass(frozen=True)
class Suggestion:
    """A policy, as Python has it, and why."""

    policy: str | None
    """None: none is needed so far, or nothing is known."""
    reasons: tuple[str, ...]


def suggest(seen: Seen) -> Suggestion:
    """Suggest a policy. Each argument that differs from its default has its reason."""
    first = seen.first_kinds
    total = first.total()
    empty = total - first[ReplyKind.ANSWER]
    if not total:
        return Suggestion(None, ("Nothing is known: no reply has come.",))
    if not empty:
        highest = wilson_interval(0, total)[1]
        reason = (
            f"Not needed so far: none of {total} first replies was empty, so with 95% confidence "
            f"at most {highest:.1%} are."
        )
        return Suggestion(None, (reason,))
    arguments, reasons = [], []
    if seen.not_recovered and not seen.recovered:
        arguments.append('on_exhausted="raise"')
        reasons.append(
            f"Retried calls that stayed empty: all {seen.not_recovered}. Asking the same model "
            "again does not help: let it be seen as an error, for with_fallbacks, or put another "
            "model among the remedies, FallbackModel(other)."
        )
    elif seen.not_recovered:
        arguments += ["max_retries=5", 'on_exhausted="raise"']
        reasons.append(
            f"Retried calls that stayed empty: {seen.not_recovered} of "
            f"{seen.recovered + seen.not_recovered}. Allow more retries, and let what remains be "
            "seen as an error."
        )
    elif seen.recovered:
        reasons.append(
            f"Retried calls that recovered: all {seen.recovered}. Two retries are enough."
        )
    if first[ReplyKind.TRUNCATED]:
        arguments.append(_REMEDIES)
        reasons.append(
            f"First replies that were truncated: {first[ReplyKind.TRUNCATED]}. The same request "
            "would meet the same end; with a larger output budget it may not."
        )
    if first[ReplyKind.BLOCKED]:
        if not seen.not_recovered:
            arguments.append('on_exhausted="raise"')
        reasons.append(
            f"First replies that the provider withheld: {first[ReplyKind.BLOCKED]}. No retry "
            "helps, but an error tells of it."
        )
    if not reasons:
        reasons.append(f"Empty first replies: {empty} of {total}, all of the bare model.")
    return Suggestion(f"RetryPolicy({', '.join(arguments)})", tuple(reasons))
