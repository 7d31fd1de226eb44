"""What a probe prints: tables for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from langchain_retrying._probe.figures import Share, Spread
from langchain_retrying._probe.summary import Retries, SideSummary, Summary


def print_report(console: Console, summary: Summary, content: Sequence[dict[str, Any]]) -> None:
    """Print it for people, in 80 columns or more."""
    console.print(Text(f"Model: {summary.model}\n"))
    for said in content:
        kind = f"{said['job']}, {said['side']}, {said['kind']}: "
        console.print(Text(f"{kind}{said['content']!r}"))
    if content:
        console.print()
    if len(summary.jobs) > 1:
        console.print(_jobs_table(summary))
        console.print()
    console.print(_table(summary))
    console.print()
    console.print(Text(_outcome(summary)))
    console.print()
    policy = summary.suggestion.policy
    console.print(Text(f"Suggested: {policy}" if policy else "Suggested: no policy", style="bold"))
    for reason in summary.suggestion.reasons:
        console.print(Padding(Text(reason), (0, 0, 0, 2)))


def as_json(summary: Summary, content: Sequence[dict[str, Any]]) -> str:
    """All figures; times in seconds, rates from 0 to 1."""
    figures = asdict(summary)
    if content:
        figures["content"] = content
    return json.dumps(figures, indent=2, default=str)


def _jobs_table(summary: Summary) -> Table:
    table = Table(box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Job")
    table.add_column("Model")
    titles = ("Calls", "Empty", "95%\ninterval", "Requests", "Answer\nmedian", "Answer\np95")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for job in summary.jobs:
        for side in (job.bare, job.wrapped):
            spread = side.answer_seconds
            table.add_row(
                job.job,
                side.side,
                str(side.calls),
                Text(
                    f"{side.empty.count} = {side.empty.rate:.0%}",
                    style="red" if side.empty.count else "green",
                ),
                _interval(side.empty),
                str(side.requests),
                _milliseconds(spread.median) if spread else "none",
                _milliseconds(spread.p95) if spread else "",
                end_section=side is job.wrapped,
            )
    return table


def _table(summary: Summary) -> Table:
    table = Table(box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
    title = "All jobs" if len(summary.jobs) > 1 else summary.jobs[0].job
    table.add_column(title, no_wrap=True)
    table.add_column("Bare")
    table.add_column("Wrapped")

    def row(title: str, cell: Callable[[SideSummary], str]) -> None:
        table.add_row(title, cell(summary.bare), cell(summary.wrapped))

    row("calls", lambda side: str(side.calls))
    for kind in summary.bare.kinds:
        if summary.bare.kinds[kind].count or summary.wrapped.kinds[kind].count:
            row(f"  {kind}", lambda side, kind=kind: _share(side.kinds[kind]))  # type: ignore[misc]  # mypy sees no type in a default
    if summary.bare.errors or summary.wrapped.errors:
        row("errors", lambda side: _listed(side.errors))
    row("finish reasons", lambda side: _listed(side.finish_reasons))
    row("answer after (median, p95)", lambda side: _spread(side.answer_seconds))
    row("requests", lambda side: str(side.requests))
    row("tokens in, out", lambda side: _tokens(side.input_tokens, side.output_tokens, summary))
    table.add_section()
    for title, value in _retry_rows(summary.retries, summary):
        table.add_row(title, "", value)
    return table


def _retry_rows(retries: Retries, summary: Summary) -> Iterable[tuple[str, str]]:
    for attempt, count in retries.recovered_at.items():
        yield f"recovered at attempt {attempt}", str(count)
    yield "retried, still empty", str(retries.not_recovered)
    yield "retries added (median, p95)", _spread(retries.added_seconds)
    extra = _tokens(retries.extra_input_tokens, retries.extra_output_tokens, summary)
    yield "extra tokens in, out", extra


def _outcome(summary: Summary) -> str:
    """The finding in one sentence."""
    bare, wrapped = summary.bare, summary.wrapped
    extra = wrapped.requests - wrapped.model_calls
    share = extra / wrapped.model_calls if wrapped.model_calls else 0
    return (
        f"Nothing usable came of {bare.empty.count} of {bare.calls} calls of the bare model and of "
        f"{wrapped.empty.count} of {wrapped.calls} of the wrapped one, which made {extra} requests "
        f"more ({share:.0%})."
    )


def _share(share: Share) -> str:
    return f"{share.count} = {share.rate:.0%} ({_interval(share)})"


def _interval(share: Share) -> str:
    return f"{100 * share.low:.0f} to {share.high:.0%}"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "none"
    return f"{_milliseconds(spread.median)}, {_milliseconds(spread.p95)}"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms"


def _tokens(tokens_in: int, tokens_out: int, summary: Summary) -> str:
    at_least = "" if summary.tokens_reported else " or more: not all reported"
    return f"{tokens_in:,}, {tokens_out:,}{at_least}"
