"""How often a real language model says nothing: bare, retried silently, retried with the nudge.

    make bench-real
    python benchmarks/real_model.py [--seeds 3]

The model is a small one that follows instructions, on loopback; the client is ChatOpenAI. Most of
the conversations end with a tool's result, as an agent's do. All rows are over the same cases: a
case is a conversation and a seed, and goes through all rows before the next one starts. The first
request of a case has the same seed in each row, so a wrapped call is retried just where the bare
one is blank. Each retry has a seed of its own, the same in each row, as if a provider draws anew
for each request. A row of `stream` has the draws of the row of `invoke`: don't add them up.

A call counts as empty if its text is white space and it calls no tool, whatever `judge` says of it.
Intervals are bootstrapped over conversations, since seeds of one conversation are no independent
draws. The agents are `create_agent`'s with tools that return the conversation's results; the turns
that call them are put in by a middleware, since a model of this size calls none by itself, and the
model is asked for the last one. The last row, a control, shows the model its own calls (which the
template of its weights leaves out), and says how much of the silence is owed to that.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any

from langchain_retrying import RetryingChatModel, RetryPolicy
from shared.conversations import CONVERSATIONS, WAYS, Conversation
from shared.report import console, progress, show, write
from shared.smollm import CALLS_SHOWN, MODEL, SeedingTransport, client, server

POLICIES: dict[str, Callable[[Any], Any]] = {
    "bare": lambda model: model,
    "silent": lambda model: RetryingChatModel(model, RetryPolicy(nudge=None)),
    "nudged": RetryingChatModel,
}
FAILURE = re.compile(
    r"\b(?:empty|blank|missing|lost|no|incomplete|last|previous)\s+(?:reply|response|answer)\b"
    r"|\b(?:reply|response|answer|message)\b[^.!?\n]{0,40}"
    r"\b(?:empty|blank|nothing|missing|lost|cut off|incomplete|unusable)\b"
    r"|\bapolog|\bsorry\b",
    re.IGNORECASE,
)
"""The rule by which a reply talks about a failure of its own; it is strict: any apology does."""


@dataclass(frozen=True)
class Call:
    """What a call has brought, and what it took."""

    conversation: Conversation
    text: str
    empty: bool
    requests: int


def measure(address: str, plan: Iterable[tuple[str, str]], seeds: int) -> dict[str, list[Call]]:
    """The calls of each row: a way to ask, and a policy."""
    transport = SeedingTransport()
    bare = client(address, transport)
    models = {policy: wrap(bare) for policy, wrap in POLICIES.items()}
    rows: dict[str, list[Call]] = {", ".join(row): [] for row in plan}
    cases = [*product(range(seeds), CONVERSATIONS)]
    for case, (_, conversation) in enumerate(progress(cases)):
        for name, calls in rows.items():
            way, policy = name.split(", ")
            transport.begin(case)
            reply = WAYS[way](models[policy], conversation)
            text = str(reply.content).strip()
            empty = not text and not reply.tool_calls
            calls.append(Call(conversation, text, empty, transport.attempt))
    return rows


def interval(calls: Iterable[Call]) -> tuple[float, float]:
    """Of the share that is empty, 95 %, by a bootstrap that draws conversations, 4,000 times.

    Where no call is empty there is nothing to draw: the upper end is then that of as many
    independent draws as there are conversations.
    """
    by_conversation = [[c.empty for c in calls if c.conversation is one] for one in CONVERSATIONS]
    shares = [sum(of_one) / len(of_one) for of_one in by_conversation]
    if not any(shares):
        return 0.0, 1 - 0.025 ** (1 / len(shares))
    draw = random.Random(0)
    drawn = sorted(fmean(draw.choices(shares, k=len(shares))) for _ in range(4_000))
    return drawn[100], drawn[-101]


def summary(calls: list[Call]) -> dict[str, Any]:
    """The figures of a row."""
    recovered = [call.text for call in calls if call.requests > 1 and not call.empty]
    low, high = interval(calls)
    return {
        "calls": len(calls),
        "empty": sum(call.empty for call in calls),
        "95 %": f"{low:.0%} to {high:.0%}",
        "requests": sum(call.requests for call in calls),
        "talk of failure": sum(bool(FAILURE.search(call.text)) for call in calls),
        "recovered": len(recovered),
        "of them talk of failure": sum(bool(FAILURE.search(text)) for text in recovered),
        "examples": recovered[:5],
    }


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="for each conversation, default 3")
    seeds = parser.parse_args().seeds
    with server() as address:
        rows = measure(address, product(("invoke", "stream"), POLICIES), seeds)
        rows |= measure(address, product(["agent"], ("bare", "nudged")), 1)
    with server(CALLS_SHOWN) as address:
        shown = measure(address, [("invoke", "bare")], 1)
        rows["invoke, bare, its calls shown"] = shown["invoke, bare"]
    figures = {name: summary(calls) for name, calls in rows.items()}
    headings = list(figures["invoke, bare"])[:-1]
    table = [[name, *(str(row[key]) for key in headings)] for name, row in figures.items()]
    show(f"{MODEL}: {len(CONVERSATIONS)} conversations", ["", *headings], table)
    for text in figures["invoke, nudged"]["examples"]:
        console.print(f"Nudged: {text!r}", markup=False)
    write(
        "real_model", {"model": MODEL, "seeds": seeds, "failure": FAILURE.pattern, "rows": figures}
    )


if __name__ == "__main__":
    main()
