"""The demo: a probe of a model that is blank at times, on a server of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from rich.text import Text

from langchain_retrying import ReplyKind, RetryingChatModel
from langchain_retrying._probe import Output, ask_and_report
from langchain_retrying._probe.demo.jobs import JOBS
from langchain_retrying._probe.demo.server import BlankingServer
from langchain_retrying._probe.prompts import Prompt
from langchain_retrying._probe.runs import Limits, Run, both_sides, undisturbed


def run_demo(calls: int, blank_rate: float, seed: int, output: Output) -> int:
    """Do each job so many times with each model, and report.

    Returns:
        The exit code, as of `run_probe`.

    Raises:
        BadInputError: The plot can't be had.

    """
    output.check()
    name = f"demo, blank at a rate of {blank_rate:.0%}"
    with _no_settings_of_others(), undisturbed(), ExitStack() as servers:
        runs = demo_runs(servers, blank_rate, seed)
        code = ask_and_report(name, runs, prompts(calls), output, Limits())
    example = _example(*runs[-2:])
    if example and not output.as_json:
        output.console.print(Text(f"\n{example}"))
    return code


def prompts(calls: int) -> list[Prompt]:
    """So many questions, no two alike: the server's luck depends on them."""
    return [Prompt([HumanMessage(f"Question {n}: are you there?")]) for n in range(1, calls + 1)]


def _example(bare: Run, wrapped: Run) -> str | None:
    """What the user saw of a turn that was blank bare, and not wrapped; None if there is none."""
    for number, (before, after) in enumerate(zip(bare.turns, wrapped.turns, strict=False), 1):
        if before.kind is ReplyKind.BLANK and after.kind is ReplyKind.ANSWER:
            said, said_then = (turn.calls[-1].content for turn in (before, after))
            return (
                f"For example, asked question {number}, {bare.job} gave {said!r} with the bare "
                f"model and {said_then!r} with the wrapped one."
            )
    return None


def demo_runs(servers: ExitStack, blank_rate: float, seed: int) -> list[Run]:
    """All jobs. Each side has a server of its own: the same seed, so the same luck."""
    runs: list[Run] = []
    for name, job in JOBS.items():
        bare, inner = (
            chat_model(servers.enter_context(BlankingServer(blank_rate, f"{seed} {name}")))
            for _ in range(2)
        )
        runs += both_sides(name, job, bare, RetryingChatModel(inner))
    return runs


def chat_model(server: BlankingServer) -> ChatOpenAI:
    """The model behind the server, without the client's own retries."""
    key = SecretStr("not-needed")
    return ChatOpenAI(
        model="demo", base_url=server.base_url, api_key=key, max_retries=0, stream_usage=True
    )


@contextmanager
def _no_settings_of_others() -> Iterator[None]:
    """No proxy, and no settings meant for other models."""
    environment = dict(os.environ)
    for name in environment:
        if name.startswith(("OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LC_OUTPUT_VERSION")):
            del os.environ[name]
    os.environ["no_proxy"] = "*"  # holds against the system's proxy settings, too
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
