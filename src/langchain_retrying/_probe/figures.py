"""What the runs came to, in figures: the one source of the table and the JSON. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist, median
from typing import TYPE_CHECKING

from langchain_retrying import ReplyKind
from langchain_retrying._probe.runs import Run

if TYPE_CHECKING:
    from typing_extensions import Self

_OUTCOMES = (*(kind.value for kind in ReplyKind), "error")
_Z = NormalDist().inv_cdf(0.975)  # 95 %, two-sided


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `count` in `total` were seen.

    Wilson's score interval: unlike the usual one it holds for small numbers and near 0 and 1.
    https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval#Wilson_score_interval

    Args:
        count: From 0 to `total`.
        total: At least 0; of nothing nothing is known, so the interval is from 0 to 1.

    """
    if total == 0:
        return 0.0, 1.0
    share = count / total
    weight = _Z**2 / total
    middle = share + weight / 2
    reach = _Z * sqrt(share * (1 - share) / total + weight / (4 * total))
    low, high = (middle - reach) / (1 + weight), (middle + reach) / (1 + weight)
    # At the ends the bound is exact, and would miss it by a rounding error.
    return (0.0 if count == 0 else low), (1.0 if count == total else high)


@dataclass(frozen=True)
class Share:
    """How often something was seen, and between which bounds its true rate lies (95 %)."""

    count: int
    total: int
    rate: float
    """From 0 to 1; 0 of nothing."""
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int) -> Self:
        """The share of `count` in `total`."""
        rate = count / total if total else 0.0
        return cls(count, total, rate, *wilson_interval(count, total))


@dataclass(frozen=True)
class Spread:
    """What a number of times come to, in seconds; None if there are none."""

    median: float | None
    p95: float | None
    """95 % are at most as long."""

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """Of any number of times."""
        if not seconds:
            return cls(None, None)
        return cls(median(seconds), sorted(seconds)[ceil(0.95 * len(seconds)) - 1])


@dataclass(frozen=True)
class Side:
    """What one of the two models, bare or wrapped, did in one job, or in all."""

    calls: int
    """Of the job; an agent makes several of the model for each. Cut-off ones don't count."""
    outcomes: dict[str, int]
    """By kind of the final reply; `error` of calls that raised."""
    empty: Share
    """All outcomes but `answer` and `error`."""
    errors: dict[str, int]
    """By the exceptions' classes."""
    model_calls: int
    """Each of which a bare model makes one request for."""
    requests: int
    """Attempts, also of calls that were cut off; but not what a client repeats by itself."""
    input_tokens: int
    output_tokens: int
    tokens_reported: bool
    """Whether each reply told its tokens; else their sums are too low."""
    answer_seconds: Spread
    """Until the whole answer was there."""
    recovered: Share
    """Calls of the model that came to an answer, among those that were retried."""
    retry_seconds: Spread
    """Added by retries to a call of the model that was retried: rejected attempts and waits."""
    retry_input_tokens: int
    """Added by retries; they are among those above."""
    retry_output_tokens: int


@dataclass(frozen=True)
class JobSummary:
    """One job, side by side."""

    job: str
    bare: Side
    wrapped: Side


@dataclass(frozen=True)
class Summary:
    """All that a probe found."""

    model: str
    stopped: str | None
    """Why it ended early; None: it did not."""
    bare: Side
    """All jobs."""
    wrapped: Side
    jobs: tuple[JobSummary, ...]


def summarise(model: str, runs: Sequence[Run], stopped: str | None) -> Summary:
    """Sum up runs: of each job a bare one, then a wrapped one."""
    bare, wrapped = runs[::2], runs[1::2]
    jobs = (
        JobSummary(one.job, _side([one]), _side([other]))
        for one, other in zip(bare, wrapped, strict=True)
    )
    return Summary(model, stopped, _side(bare), _side(wrapped), tuple(jobs))


def _side(runs: Sequence[Run]) -> Side:
    turns = [turn for run in runs for turn in run.turns]
    calls = [call for turn in turns for call in turn.calls]
    retried = [call for call in calls if call.requests > 1 and call.kind]
    outcomes = Counter(turn.outcome for turn in turns if turn.outcome)
    total = outcomes.total()
    return Side(
        calls=total,
        outcomes={outcome: outcomes[outcome] for outcome in _OUTCOMES},
        empty=Share.of(total - outcomes["answer"] - outcomes["error"], total),
        errors=dict(Counter(type(turn.error).__name__ for turn in turns if turn.error)),
        model_calls=len(calls),
        requests=sum(call.requests for call in calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        tokens_reported=all(call.reported_tokens for call in calls),
        answer_seconds=Spread.of([turn.seconds for turn in turns if turn.seconds is not None]),
        recovered=Share.of(sum(call.kind is ReplyKind.ANSWER for call in retried), len(retried)),
        retry_seconds=Spread.of([call.added_seconds for call in retried]),
        retry_input_tokens=sum(call.extra_input_tokens for call in calls),
        retry_output_tokens=sum(call.extra_output_tokens for call in calls),
    )
