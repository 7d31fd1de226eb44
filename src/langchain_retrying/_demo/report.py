"""What the demo prints in the end."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich import box
from rich.table import Table

from langchain_retrying._demo.runs import Tally


def table(tallies: Sequence[Tally]) -> Table:
    """A row for each job and side, in 80 columns."""
    result = Table(box=box.HORIZONTALS, show_edge=False, padding=(0, 1, 0, 0))
    result.add_column("Job")
    result.add_column("Model")
    titles = ("Blank\nturns", "Model\ncalls", "Attempts", "Requests", "Extra\nrequests")
    for title in (*titles, "Text after\n(median)"):
        result.add_column(title, justify="right")
    for tally in tallies:
        seconds = tally.seconds_to_text
        result.add_row(
            tally.job,
            tally.side,
            str(tally.blank_turns),
            str(tally.calls),
            str(tally.attempts),
            str(tally.requests),
            str(tally.extra_requests),
            f"{1000 * median(seconds):.0f} ms" if seconds else "never",
            end_section=tally.side == "wrapped",
        )
    return result


def summary(tallies: Sequence[Tally]) -> str:
    """The outcome in one sentence."""
    bare = [tally for tally in tallies if tally.side == "bare"]
    wrapped = [tally for tally in tallies if tally.side == "wrapped"]
    extra = sum(tally.extra_requests for tally in wrapped)
    return (
        f"The user saw nothing in {sum(tally.blank_turns for tally in bare)} of "
        f"{sum(tally.turns for tally in bare)} turns with the bare model and in "
        f"{sum(tally.blank_turns for tally in wrapped)} with the wrapped one, which made "
        f"{extra} requests more ({extra / sum(tally.calls for tally in wrapped):.0%})."
    )
