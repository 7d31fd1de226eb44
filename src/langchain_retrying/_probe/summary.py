"""What the runs came to, in figures: the one source of the report, the JSON and the plot. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from langchain_retrying import ReplyKind
from langchain_retrying._probe.figures import Share, Spread
from langchain_retrying._probe.recorder import Call, Recorder
from langchain_retrying._probe.runs import Run
from langchain_retrying._probe.suggestion import Seen, Suggestion, suggest


@dataclass(frozen=True)
class SideSummary:
    """What one of the two models did in one job, or in all."""

    side: str
    """`bare` or `wrapped`."""
    calls: int
    """Of the job; an agent makes several of the model for each. Cut-off ones don't count."""
    kinds: dict[str, Share]
    """Of the final reply; `error` of calls that raised."""
    empty: Share
    """All kinds but `answer` and `error`."""
    finish_reasons: dict[str, int]
    """Of the replies of the model, as spelt by the provider; `none` where there was none."""
    errors: dict[str, int]
    """By the exceptions' classes."""
    model_calls: int
    """Each of which a bare model makes one request for."""
    requests: int
    """Attempts, also of calls that were cut off; but not what a client repeats by itself."""
    input_tokens: int
    output_tokens: int
    answer_seconds: Spread | None
    """Until the answer: its first usable output if it is streamed, else the whole."""
    answers_after: tuple[float, ...]
    """The same of each answer, in order of length."""


@dataclass(frozen=True)
class Retries:
    """What the wrapped model's retries did, over all jobs."""

    recovered_at: dict[int, int]
    """By number of the attempt that was an answer: how many calls of the model."""
    not_recovered: int
    added_seconds: Spread | None
    """Of calls that were retried: rejected attempts and waits."""
    extra_input_tokens: int
    extra_output_tokens: int


@dataclass(frozen=True)
class JobSummary:
    """One job, side by side."""

    job: str
    bare: SideSummary
    wrapped: SideSummary


@dataclass(frozen=True)
class Summary:
    """All that a probe found."""

    model: str
    stopped: str | None
    """Why it ended early; None: it did not."""
    jobs: tuple[JobSummary, ...]
    bare: SideSummary
    """All jobs."""
    wrapped: SideSummary
    retries: Retries
    tokens_reported: bool
    """Whether each reply told its tokens; else their sums are too low."""
    suggestion: Suggestion


def summarise(model: str, runs: Sequence[Run], stopped: str | None) -> Summary:
    """Sum up runs, which have come in pairs: a job's bare one, and its wrapped one."""
    jobs = tuple(
        JobSummary(job, *(_side([run]) for run in pair))
        for job, pair in groupby(runs, key=lambda run: run.job)
    )
    bare, wrapped = (_side([run for run in runs if run.side == side]) for side in _SIDES)
    retries = _retries([call for run in runs for turn in run.turns for call in turn.calls])
    return Summary(
        model,
        stopped,
        jobs,
        bare,
        wrapped,
        retries,
        all(call.reported_tokens for run in runs for turn in run.turns for call in turn.calls),
        suggest(_seen(runs, retries)),
    )


_SIDES = ("bare", "wrapped")


def _side(runs: Sequence[Run]) -> SideSummary:
    turns = [turn for run in runs for turn in run.turns]
    ended = [turn for turn in turns if turn.ended]
    calls = [call for turn in turns for call in turn.calls]
    total = len(ended)
    kinds = Counter("error" if turn.kind is None else turn.kind.value for turn in ended)
    seconds = sorted(turn.seconds for turn in ended if turn.seconds is not None)
    return SideSummary(
        side=runs[0].side,
        calls=total,
        kinds={kind: Share.of(kinds[kind], total) for kind in [*map(_value, ReplyKind), "error"]},
        empty=Share.of(total - kinds["answer"] - kinds["error"], total),
        finish_reasons=_counts(
            call.verdict.finish_reason or "none" for call in calls if call.verdict
        ),
        errors=_counts(type(turn.error).__name__ for turn in ended if turn.error),
        model_calls=len(calls),
        requests=sum(call.requests for call in calls),
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        answer_seconds=Spread.of(seconds),
        answers_after=tuple(seconds),
    )


def _value(kind: ReplyKind) -> str:
    return kind.value


def _counts(words: Iterable[str]) -> dict[str, int]:
    """The commonest first."""
    return dict(Counter(words).most_common())


def _retries(calls: Sequence[Call]) -> Retries:
    retried = [call for call in calls if call.requests > 1 and call.kind]
    recovered = Counter(call.requests for call in retried if call.kind is ReplyKind.ANSWER)
    return Retries(
        recovered_at=dict(sorted(recovered.items())),
        not_recovered=len(retried) - recovered.total(),
        added_seconds=Spread.of([call.added_seconds for call in retried]),
        extra_input_tokens=sum(call.extra_input_tokens for call in calls),
        extra_output_tokens=sum(call.extra_output_tokens for call in calls),
    )


def _seen(runs: Sequence[Run], retries: Retries) -> Seen:
    """What the first attempts were, bare and wrapped, which is the same request; and then."""
    first = [
        call.first_kind
        for run in runs
        for turn in run.turns
        for call in turn.calls
        if call.first_kind
    ]
    return Seen(Counter(first), sum(retries.recovered_at.values()), retries.not_recovered)


def content_of(runs: Sequence[Run]) -> list[dict[str, object]]:
    """What the model said, turn by turn, for those who ask to see it."""
    return [
        {"job": run.job, "side": run.side, "kind": _kind(turn), "content": call.content}
        for run in runs
        for turn in run.turns
        for call in turn.calls[-1:]
    ]


def _kind(turn: Recorder) -> str:
    return turn.kind.value if turn.kind else "error" if turn.error else "cut off"
