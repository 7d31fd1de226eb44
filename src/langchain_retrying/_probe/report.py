"""What a probe prints for people: a table, and what it tells in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from langchain_retrying._probe.figures import Share, Side, Summary

_FEW = 10
"""Of fewer retried calls nothing can be told."""

_REMEDIES = {"truncated": "RaiseOutputBudget()", "blocked": "FallbackModel(other)"}
"""Of the kinds that are not retried by default."""


def print_report(console: Console, summary: Summary) -> None:
    """Print it for people, in 50 columns or more."""
    console.print(Text(f"Model: {summary.model}\n"))
    console.print(_table(summary))
    for sentence in _findings(summary.bare, summary.wrapped):
        console.print(Text(f"\n{sentence}"))


def _table(summary: Summary) -> Table:
    table = Table(box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for title in ("Bare", "Wrapped"):
        table.add_column(title, justify="right", no_wrap=True)
    for section in (_empty_rows(summary), _cost_rows(summary), _retry_rows(summary.wrapped)):
        for row in section:
            table.add_row(*row)
        table.add_section()
    return table


Row = tuple[str, str | Text, str | Text]
"""The title, the bare model's cell and the wrapped one's."""


def _empty_rows(summary: Summary) -> Iterator[Row]:
    bare, wrapped = summary.bare, summary.wrapped
    yield "calls", f"{bare.calls:,}", f"{wrapped.calls:,}"
    yield "empty replies", _rate(bare.empty), _rate(wrapped.empty)
    yield "  95% interval", _interval(bare.empty), _interval(wrapped.empty)
    if len(summary.jobs) > 1:
        for job in summary.jobs:
            yield f"  in {job.job}", _rate(job.bare.empty), _rate(job.wrapped.empty)
    for outcome, count in bare.outcomes.items():
        if outcome != "answer" and (count or wrapped.outcomes[outcome]):
            title = "errors" if outcome == "error" else f"  {outcome}"
            yield title, f"{count:,}", f"{wrapped.outcomes[outcome]:,}"


def _cost_rows(summary: Summary) -> Iterator[Row]:
    cells: dict[str, Callable[[Side], str]] = {
        "requests": lambda side: f"{side.requests:,}",
        "tokens in": lambda side: _tokens(side.input_tokens, side),
        "tokens out": lambda side: _tokens(side.output_tokens, side),
        "answer after, median": lambda side: _milliseconds(side.answer_seconds.median),
        "answer after, p95": lambda side: _milliseconds(side.answer_seconds.p95),
    }
    for title, cell in cells.items():
        yield title, cell(summary.bare), cell(summary.wrapped)


def _retry_rows(wrapped: Side) -> Iterator[Row]:
    yield "retried calls", "", f"{wrapped.recovered.total:,}"
    yield "  recovered", "", f"{wrapped.recovered.count:,}"
    yield "  tokens in added", "", _tokens(wrapped.retry_input_tokens, wrapped)
    yield "  tokens out added", "", _tokens(wrapped.retry_output_tokens, wrapped)
    yield "  time added, median", "", _milliseconds(wrapped.retry_seconds.median)
    yield "  time added, p95", "", _milliseconds(wrapped.retry_seconds.p95)


def _rate(share: Share) -> Text:
    style = "red" if share.count else "green"
    return Text(f"{share.count:,} = {share.rate:.0%}", style=style)


def _tokens(count: int, side: Side) -> str:
    return f"{count:,}" if side.tokens_reported else f"{count:,}+"


def _milliseconds(seconds: float | None) -> str:
    return "none" if seconds is None else f"{1000 * seconds:,.0f} ms"


def _findings(bare: Side, wrapped: Side) -> Iterator[str]:
    """What the figures tell, in sentences."""
    extra = wrapped.requests - wrapped.model_calls
    yield (
        f"Nothing usable came of {bare.empty.count} of {bare.calls} calls of the bare model and of "
        f"{wrapped.empty.count} of {wrapped.calls} of the wrapped one, whose retries added "
        f"{extra / max(wrapped.model_calls, 1):.0%} to its requests."
    )
    yield _whether_retries_help(bare, wrapped)
    for kind, remedy in _REMEDIES.items():
        if bare.outcomes[kind] or wrapped.outcomes[kind]:
            policy = f"RetryPolicy(remedies={{ReplyKind.{kind.upper()}: [{remedy}]}})"
            yield f"What is {kind} is retried only if the policy has a remedy for it: {policy}."
    if not (bare.tokens_reported and wrapped.tokens_reported):
        yield "Tokens: there are more, since not all replies reported theirs."
    if errors := Counter(bare.errors) + Counter(wrapped.errors):
        yield f"Errors: {', '.join(f'{name} {count}' for name, count in errors.items())}."


def _whether_retries_help(bare: Side, wrapped: Side) -> str:
    recovered = wrapped.recovered
    if not (bare.empty.count or wrapped.empty.count or recovered.total):
        return f"No reply was empty: with 95% confidence at most {bare.empty.high:.0%} are."
    if recovered.total < _FEW:
        return f"Calls that were retried: {recovered.total}, too few to tell whether that helps."
    return (
        f"Of {recovered.total} calls that were retried {recovered.count} recovered: with 95% "
        f"confidence {_interval(recovered)} do."
    )


def _interval(share: Share) -> str:
    return f"{100 * share.low:.0f} to {share.high:.0%}"
