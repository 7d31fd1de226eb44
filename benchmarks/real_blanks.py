"""How often a real language model says nothing: bare, retried silently, retried with the nudge.

    make bench-real
    python benchmarks/real_blanks.py [--seeds 3]

The model is a small one that follows instructions, on loopback; the client is ChatOpenAI. Most of
the conversations end with a tool's result, as an agent's do. All rows are over the same cases: a
case is a conversation and a seed, and goes through all rows before the next one starts. The first
request of a case has the same seed in each row, so a wrapped call is retried just where the bare
one is blank. Each retry has a seed of its own, the same in each row, as if a provider draws anew
for each request. A row of `stream` has the draws of the row of `invoke`: don't add them up.
The server's prompt cache is on, so seconds are those of a prompt that was asked before.

A call counts as empty if its text is white space and it calls no tool, whatever `judge` says of it.
Intervals are bootstrapped over conversations, since seeds of one conversation are no independent
draws. The agents are `create_agent`'s with tools that return the conversation's results; the turns
that call them are put in by a middleware, since a model of this size calls none by itself, and the
model is asked for the last one. The last control shows the model its own calls (which the template
of its weights leaves out), and says how much of the silence is owed to that.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from rich.progress import track

from langchain_retrying import RetryingChatModel, RetryPolicy
from shared.conversations import MEASURED, Conversation
from shared.real_model import (
    CALLS_SHOWN,
    TALKS_OF_FAILURE,
    SeedingTransport,
    client,
    interval,
    mean,
    server,
    show_and_save,
    told,
    tools_of,
)

POLICIES = {"bare": None, "silent": RetryPolicy(nudge=None), "nudged": RetryPolicy()}
SHOWN = 5
"""Replies that are printed as examples."""


@dataclass(frozen=True)
class Call:
    """What a call has brought, and what it took."""

    text: str
    empty: bool
    requests: int
    seconds: float

    @property
    def talks_of_failure(self) -> bool:
        """By the rule."""
        return bool(TALKS_OF_FAILURE.search(self.text))


Asking = Callable[[Any, Conversation], AIMessage]
Row = list[list[Call]]
"""Calls by conversation."""


def invoke(model: Any, conversation: Conversation) -> AIMessage:
    """Ask for a whole reply."""
    reply: AIMessage = model.invoke(conversation.messages, **tools_of(conversation))
    return reply


def stream(model: Any, conversation: Conversation) -> AIMessage:
    """Ask for a stream, and add it up."""
    chunks = model.stream(conversation.messages, **tools_of(conversation))
    reply: AIMessage = reduce(add, chunks)
    return reply


def run_agent(model: Any, conversation: Conversation) -> AIMessage:
    """Run an agent whose tools bring the conversation's results, up to its last turn."""
    given = conversation.messages[len(conversation.opening) :]
    calls = [message for message in given if isinstance(message, AIMessage)]

    @wrap_model_call
    def put_in_calls(request: Any, handler: Any) -> Any:
        made = sum(bool(getattr(message, "tool_calls", ())) for message in request.messages)
        return calls[made] if made < len(calls) else handler(request)

    tools = [
        StructuredTool.from_function(lambda result=result: result, name=name, description=name)
        for name, result in conversation.tools.items()
    ]
    agent = create_agent(model, tools, middleware=[put_in_calls])
    last: AIMessage = agent.invoke({"messages": list(conversation.opening)})["messages"][-1]
    return last


def measure(address: str, plan: list[tuple[str, str, Asking]], seeds: int) -> dict[str, Row]:
    """What each row has brought: its name, the policy, and how the model is asked."""
    transport = SeedingTransport()
    bare = client(address, transport)
    wrapped = {
        name: bare if policy is None else RetryingChatModel(bare, policy)
        for name, policy in POLICIES.items()
    }
    rows: dict[str, Row] = {name: [[] for _ in MEASURED] for name, _, _ in plan}
    cases = [(seed, place) for seed in range(seeds) for place in range(len(MEASURED))]
    for case, (_, place) in enumerate(track(cases, f"Asking ({len(plan)} rows)")):
        first = case % len(plan)  # each row is first in turn
        for name, policy, ask in plan[first:] + plan[:first]:
            transport.begin(case)
            begun = time.perf_counter()
            reply = ask(wrapped[policy], MEASURED[place])
            text = str(reply.content).strip()
            rows[name][place].append(
                Call(
                    text,
                    not text and not getattr(reply, "tool_calls", ()),
                    transport.attempt,
                    time.perf_counter() - begun,
                )
            )
    return rows


def empties(row: Row) -> list[list[float]]:
    """1 for each empty call, 0 for each other one."""
    return [[float(call.empty) for call in calls] for calls in row]


def difference(one: Row, other: Row) -> dict[str, Any]:
    """The rate of one row less that of another, case by case."""
    less = [
        [x - y for x, y in zip(*calls, strict=True)]
        for calls in zip(empties(one), empties(other), strict=True)
    ]
    low, high = interval(less, mean)
    return {"difference": round(mean(less), 4), "95": [round(low, 4), round(high, 4)]}


def replies_after_retry(row: Row) -> list[list[Call]]:
    """The calls of a row that were retried and came to something."""
    return [[call for call in calls if call.requests > 1 and not call.empty] for calls in row]


def summary(row: Row) -> dict[str, Any]:
    """The figures of a row."""
    calls = [call for of_one in row for call in of_one]
    retried = replies_after_retry(row)
    talk = [[float(call.talks_of_failure) for call in of_one] for of_one in retried]
    texts = [call.text for of_one in retried for call in of_one]
    empty = empties(row)
    return {
        "calls": len(calls),
        "empty": sum(call.empty for call in calls),
        "empty_rate_95": told(empty),
        "requests": sum(call.requests for call in calls),
        "seconds_per_call": round(sum(call.seconds for call in calls) / len(calls), 3),
        "answered_after_a_retry": len(texts),
        "of_them_talk_of_failure": sum(map(sum, talk)),
        "talk_of_failure_95": told(talk),
        "all_replies_that_talk_of_failure": sum(call.talks_of_failure for call in calls),
        "empty_by_conversation": [int(sum(of_one)) for of_one in empty],
        "examples": texts[:SHOWN],
        "examples_of_talk_of_failure": [t for t in texts if TALKS_OF_FAILURE.search(t)][:SHOWN],
    }


def main() -> None:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3, help="for each conversation, default 3")
    seeds = parser.parse_args().seeds
    logging.getLogger("langchain_retrying").setLevel(logging.ERROR)  # it warns of each retry
    ways: dict[str, Asking] = {"invoke": invoke, "stream": stream}
    plan = [(f"{way}, {policy}", policy, ask) for way, ask in ways.items() for policy in POLICIES]
    agents: list[tuple[str, str, Asking]] = [
        (f"agent, {policy}", policy, run_agent) for policy in ("bare", "nudged")
    ]
    with server() as address:
        rows = measure(address, plan, seeds)
        rows |= measure(address, agents, 1)
    with server(CALLS_SHOWN) as address:
        rows |= measure(address, [("control: calls shown, bare", "bare", invoke)], 1)
    figures = {name: summary(row) for name, row in rows.items()}
    report(seeds, rows, figures)


def report(seeds: int, rows: dict[str, Row], figures: dict[str, dict[str, Any]]) -> None:
    """Print and save all that is told."""
    headings = [
        "call",
        "empty",
        "rate (95 %)",
        "requests",
        "s/call",
        "recovered",
        "talk of failure",
    ]
    table = [
        [
            name,
            f"{row['empty']} of {row['calls']}",
            row["empty_rate_95"],
            str(row["requests"]),
            f"{row['seconds_per_call']:.2f}",
            str(row["answered_after_a_retry"]),
            f"{row['of_them_talk_of_failure']:.0f}: {row['talk_of_failure_95']}"
            if row["answered_after_a_retry"]
            else "",
        ]
        for name, row in figures.items()
    ]
    by_conversation = [
        [conversation.group, str(conversation.opening[-1].content), *map(str, counts)]
        for conversation, *counts in zip(
            MEASURED,
            *(figures[f"invoke, {policy}"]["empty_by_conversation"] for policy in POLICIES),
            strict=True,
        )
    ]
    agree = [
        (call.requests > 1) == of_bare.empty
        for way in ("invoke", "stream")
        for policy in ("silent", "nudged")
        for pair in zip(rows[f"{way}, {policy}"], rows[f"{way}, bare"], strict=True)
        for call, of_bare in zip(*pair, strict=True)
    ]
    compared = {
        f"{one} less {other}": difference(rows[f"invoke, {one}"], rows[f"invoke, {other}"])
        for one, other in (("silent", "bare"), ("nudged", "bare"), ("nudged", "silent"))
    }
    nudged, bare = figures["invoke, nudged"], figures["invoke, bare"]
    own = (
        f"By this rule {bare['all_replies_that_talk_of_failure']} of the bare model's own "
        f"{bare['calls'] - bare['empty']} replies talk of one, too."
    )
    notes = [
        f"Retried just where the bare model was blank: {sum(agree)} of {len(agree)} wrapped calls.",
        *(
            f"{name}: {told['difference']:+.1%}, 95 % {told['95']}"
            for name, told in compared.items()
        ),
        f"Talk of failure: {TALKS_OF_FAILURE.pattern}",
        own,
        *(f"Nudged: {text!r}" for text in nudged["examples"]),
        *(f"Nudged, of a failure: {text!r}" for text in nudged["examples_of_talk_of_failure"]),
    ]
    tables = {
        f"Blanks, {len(MEASURED)} conversations, {seeds} seeds each (agent and control: 1)": (
            headings,
            table,
        ),
        f"Blanks of {seeds} by conversation (invoke)": (
            ["group", "request", *POLICIES],
            by_conversation,
        ),
    }
    show_and_save(
        "real_blanks", tables, notes, {"seeds": seeds, "compared": compared, "rows": figures}
    )


if __name__ == "__main__":
    main()
