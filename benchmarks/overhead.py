"""What the wrapper costs where nothing is empty: CPU time, wrapped / bare.

    python benchmarks/overhead.py [--seconds 3] [--against ../before/src]

The same model stands on both sides: a fast one, whose chunks are built anew for each stream or made
beforehand, when LangChain's own work on them is less; or a provider's real client, which streams
100 chunks of text, or 900 of reasoning first, from another process. A blank and then an answer are
beside two calls of the bare model, the least that they can cost.

With `--against`, another checkout is measured in turns with this one, and told beside it: "worse"
and "better" are figures whose intervals don't meet.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.messages import HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_retrying import RetryingChatModel
from shared.checkouts import HERE, measured, tell
from shared.loopback import provider
from shared.models import UNSEEN, FastChatModel
from shared.ratios import ratio
from shared.report import Row, control, parser_of, report, row_of
from shared.work import (
    HANDLER,
    Work,
    agent,
    ainvoke,
    astream,
    both,
    invoke,
    look_up,
    run,
    stream,
    turn,
)

IMPORT = """
import tenacity, time
from langchain_core.language_models import BaseChatModel
start = time.process_time()
import langchain_retrying
print(1_000 * (time.process_time() - start))
"""

WorkOf = Callable[[Any], Work]
Case = tuple[str, str, float | None, Work, Work]
"""Group, name, target, and the work of the bare model and of the wrapped one."""


def whole_calls() -> Iterator[Case]:
    """Calls that give one message each."""
    prompts = [[HumanMessage("Hi")] for _ in range(10)]
    hundred = ["Hi"] * 100
    tools = [convert_to_openai_tool(look_up)]

    def cached(model: Any) -> Work:
        return invoke(model.model_copy(update={"cache": InMemoryCache()}))

    ways: list[tuple[str, float, WorkOf]] = [
        ("invoke", 1.0, invoke),
        ("invoke, a handler", 1.0, partial(invoke, config=HANDLER)),
        ("ainvoke", 1.0, ainvoke),
        ("ainvoke, a handler", 1.0, partial(ainvoke, config=HANDLER)),
        ("generate of 10", 1.0, lambda model: lambda: model.generate(prompts)),
        ("bind_tools + invoke", 1.0, lambda model: lambda: model.bind_tools(tools).invoke("Hi")),
        ("batch of 100", 1.02, lambda model: lambda: model.batch(hundred)),
        ("abatch of 100", 1.02, lambda model: lambda: run(model.abatch(hundred))),
        ("create_agent turn", 1.02, lambda model: turn(agent(model))),
        ("invoke, a cache hit", 1.05, cached),
    ]
    for name, target, work_of in ways:
        yield case("call", name, target, work_of, FastChatModel())


def recoveries() -> Iterator[Case]:
    """Calls that are retried."""
    for name, work_of in (("invoke", invoke), ("ainvoke", ainvoke)):
        model = FastChatModel(blank_first=True)
        bare, wrapped = work_of(model), work_of(RetryingChatModel(model))
        yield "a blank", f"{name} / two bare ones", None, both(bare, bare), wrapped


def streams(*, beforehand: bool) -> Iterator[Case]:
    """Streams of text, and such as are held for long before their text."""
    made = "made beforehand" if beforehand else "built anew"
    for name, chunks, config, target, async_target in (
        ("1 of text", 1, None, 1.09, 1.09),
        ("100 of text", 100, None, 1.04, 1.06),
        ("100 of text, a handler", 100, HANDLER, 1.04, 1.06),
        ("1,000 of text", 1_000, None, 1.04, 1.06),
    ):
        model = FastChatModel(chunks=chunks, beforehand=beforehand)
        targets = (None, None) if beforehand else (target, async_target)
        yield case(made, name, targets[0], partial(stream, config=config), model)
        yield case(made, f"{name}, async", targets[1], partial(astream, config=config), model)
    for kind in UNSEEN:
        model = FastChatModel(unseen=900, kind=kind, chunks=100, beforehand=beforehand)
        name, held_target = f"900 of {kind}, 100 of text", 1.15 if beforehand else 0.95
        yield case(made, name, held_target, stream, model)
        yield case(made, f"{name}, async", held_target, astream, model)


def clients(address: str) -> Iterator[Case]:
    """Streams of providers' own clients, from another process."""
    for name, unseen, maker in (
        ("ChatOpenAI, 100 of text", 0, "openai"),
        ("ChatDeepSeek, 900 and 100", 900, "deepseek"),
    ):
        url = f"{address}/{unseen}/100"
        model = init_chat_model("any", model_provider=maker, base_url=url, api_key="none")
        yield case("real", name, None, stream, model)
        yield case("real", f"{name}, async", None, astream, model)


def case(group: str, name: str, target: float | None, work_of: WorkOf, model: Any) -> Case:
    """The same work of a model, bare and wrapped."""
    return group, name, target, work_of(model), work_of(RetryingChatModel(model))


def import_row() -> Row:
    """Import the package in processes of their own, where what it stands on has been imported."""
    command = [sys.executable, "-c", IMPORT]
    taken = [float(subprocess.check_output(command)) for _ in range(5)]  # noqa: S603 -- see above
    return Row("import", "milliseconds, least of 5", min(taken), 15.0)


def measure(seconds: float) -> list[Row]:
    """Measure all cases in this process."""
    with provider() as address:
        cases = [
            *whole_calls(),
            *recoveries(),
            *streams(beforehand=False),
            *streams(beforehand=True),
            *clients(address),
        ]
        rows = [
            row_of(group, name, ratio(bare, wrapped, seconds=seconds), target)
            for group, name, target, bare, wrapped in cases
        ]
    return [control(seconds), *rows, import_row()]


def main() -> None:
    """Measure in turns of processes, or be one of them."""
    parser = parser_of(__doc__)
    parser.add_argument("--against", type=Path, help="`src` of another checkout")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        tell(measure(options.seconds))
        return
    sources = [HERE, options.against.resolve()] if options.against else [HERE]
    rows, *before = measured(__file__, sources, options.seconds)
    report("overhead", "CPU time, wrapped / bare", rows, *before, seconds=options.seconds)


if __name__ == "__main__":
    main()
