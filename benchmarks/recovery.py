"""What retries gain and what they cost: simulated blanks at set rates, met by real policies.

    python benchmarks/recovery.py [--seconds 3]

`RetryingChatModel` itself is driven on a scripted model; nothing waits. Blanks are of two kinds:
independent, where each request is blank at the rate, whatever was before; and persistent, where
the same request always meets the same end, and only one that has changed (nudged, say) is drawn
anew. A real model stands between the two. 1,000 prompts for each of `--seconds`; the same ones,
with the same seeds, for each policy.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from langchain_retrying import (
    Nudge,
    ReplyKind,
    RetryBudget,
    RetryingChatModel,
    RetryPolicy,
    WithParams,
    is_empty_ai_message,
)
from langchain_retrying._policy.remedies import Rung
from langchain_retrying.testing import RecordingSleep, ScriptedChatModel, ScriptedRequest
from shared.report import (
    console,
    noise_of_machine,
    progress,
    seconds_of_command_line,
    write_results,
)

RATES = (0.05, 0.15, 0.29)
RETRIES = (0, 1, 2, 3)
PROMPTS_A_SECOND = 1_000

LADDER: dict[ReplyKind, list[Rung]] = {
    # Each rung sends another request than the one before.
    ReplyKind.BLANK: [Nudge(), (Nudge(), WithParams(temperature=1.0)), Nudge("Please go on.")]
}

# A new policy is made for each cell of the table. Further ones are added here.
POLICIES: dict[str, Callable[[int], RetryPolicy]] = {
    "repeated": lambda retries: RetryPolicy(max_retries=retries, nudge=None),
    "nudged": lambda retries: RetryPolicy(max_retries=retries),
    "ladder": lambda retries: RetryPolicy(max_retries=retries, remedies=LADDER),
    "with a budget": lambda retries: RetryPolicy(max_retries=retries, stop=RetryBudget(share=0.2)),
}

IsBlank = Callable[[ScriptedRequest], bool]


def independent(rate: float) -> IsBlank:
    """Each request is drawn by itself."""
    draw = random.Random("independent")
    return lambda request: draw.random() < rate


def persistent(rate: float) -> IsBlank:
    """The request, messages and arguments, decides."""

    def is_blank(request: ScriptedRequest) -> bool:
        sent = [message.content for message in request.messages]
        return random.Random(f"{sent} {request.kwargs}").random() < rate

    return is_blank


WORLDS = {"independent": independent, "persistent": persistent}


@dataclass(frozen=True)
class Cell:
    """What came of one policy at one rate."""

    blanks: str
    rate: float
    policy: str
    retries: int
    prompts: int
    answered: int
    extra_requests: int

    @property
    def told(self) -> str:
        """Share of prompts answered, and extra requests for each hundred prompts."""
        extra = 100 * self.extra_requests / self.prompts
        return f"{self.answered / self.prompts:.1%} {extra:5.1f}"


def simulate(is_blank: IsBlank, policy: RetryPolicy, prompts: int) -> tuple[int, int]:
    """How many prompts are answered, and with how many extra requests."""

    def reply(messages: Any) -> str:
        return "" if is_blank(script.requests[-1]) else "Hello."

    script = ScriptedChatModel(reply)
    model = RetryingChatModel(script, policy)
    answers = [model.invoke(f"Question {number}") for number in range(prompts)]
    answered = sum(not is_empty_ai_message(answer) for answer in answers)
    return answered, len(script.requests) - prompts


def cells(prompts: int) -> Iterator[Cell]:
    """All cells of the table."""
    for blanks, world in WORLDS.items():
        for rate in RATES:
            for name, policy_with in POLICIES.items():
                for retries in RETRIES:
                    answered, extra = simulate(world(rate), policy_with(retries), prompts)
                    yield Cell(blanks, rate, name, retries, prompts, answered, extra)


def print_table(simulated: list[Cell]) -> None:
    """A line for each policy at each rate."""
    table = Table(
        title=f"Answered, and extra requests a hundred of {simulated[0].prompts:,} prompts",
        title_justify="left",
    )
    for heading in ("blanks", "rate", "policy"):
        table.add_column(heading)
    for retries in RETRIES:
        table.add_column(f"max_retries={retries}", justify="right")
    for start in range(0, len(simulated), len(RETRIES)):
        line = simulated[start : start + len(RETRIES)]
        first = line[0]
        ends_rate = (start // len(RETRIES) + 1) % len(POLICIES) == 0
        told = (cell.told for cell in line)
        table.add_row(first.blanks, f"{first.rate:.0%}", first.policy, *told, end_section=ends_rate)
    console.print(table)
    points = 98 / math.sqrt(simulated[0].prompts)  # half a 95 % confidence interval, at its widest
    console.print(f"Shares are off by {points:.1f} points at most, 19 times of 20.")


def main() -> None:
    """Simulate all cells."""
    seconds = seconds_of_command_line(__doc__)
    noise = noise_of_machine(seconds)
    total = len(WORLDS) * len(RATES) * len(POLICIES) * len(RETRIES)
    prompts = max(1, int(PROMPTS_A_SECOND * seconds))
    with RecordingSleep():
        simulated = list(progress(cells(prompts), total))
    print_table(simulated)
    written = [asdict(cell) for cell in simulated]
    write_results("recovery", {"cells": written}, seconds=seconds, noise=noise)


if __name__ == "__main__":
    main()
