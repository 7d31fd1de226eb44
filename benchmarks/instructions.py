"""Instructions executed, wrapped / bare: a second gate on overhead, free of the machine's noise.

    python benchmarks/instructions.py [--seconds 3]

valgrind's callgrind counts them, in some minutes. Everything is imported once, then a child is
forked for each count to be taken; what a call takes is the difference of a child that makes twice
as many and one that makes as many. `--seconds` is taken for the noise of the machine only.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_retrying import RetryingChatModel
from overhead import Case, Work, agents, held_streams, recovery, streams, whole_calls
from shared.report import Row, noise_of_machine, report, seconds_of_command_line

UNDER_VALGRIND = "LANGCHAIN_RETRYING_COUNTS"
LONG = 100
"""Chunks of a stream that is counted once only: it repeats itself."""
# What takes too long under valgrind, and what uses threads: a forked child has none.
NOT_COUNTED = (
    "concurrent",
    "10,000",
    "batch",
    "stream_mode",
    "ainvoke, a handler",
    "a handler, async",
)


def counted_cases(run: Callable[[Any], Any]) -> list[Case]:
    """The cases of `overhead` that are counted."""
    cases = [*whole_calls(run), *streams(run), *held_streams(run), *agents(), *recovery(run)]
    return [case for case in cases if not any(word in case.name for word in NOT_COUNTED)]


def count_all(cases: list[Case]) -> None:
    """Under valgrind: fork the children, and print the id of each, in the order of the cases."""
    gc.disable()
    for case in cases:
        calls = 1 if case.model.unseen + case.model.chunks >= LONG else 10
        bare = (case.bare_work_with or case.work_with)(case.model)
        for work in (bare, case.work_with(RetryingChatModel(case.model))):
            for _ in range(2 * calls):  # warm up
                work()
            for times in (calls, 2 * calls):
                print(_fork(work, times), flush=True)


def _fork(work: Work, times: int) -> int:
    child = os.fork()
    if not child:
        for _ in range(times):
            work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"a child ended with status {status}"
    return child


def counts() -> list[int]:
    """Instructions of each child, each with all that its parent had executed before it."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/%p"]
        finished = subprocess.run(  # noqa: S603 -- this script itself
            [*command, sys.executable, __file__],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, UNDER_VALGRIND: "1", "PYTHONHASHSEED": "0"},
        )
        return [_summary(Path(directory, child)) for child in finished.stdout.split()]


def _summary(path: Path) -> int:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("summary: "):
            return int(line.split()[1])
    raise ValueError(f"no summary in {path.name}")


def main() -> None:
    """Count."""
    seconds = seconds_of_command_line(__doc__)
    loop = asyncio.new_event_loop()
    cases = counted_cases(loop.run_until_complete)
    if UNDER_VALGRIND in os.environ:
        count_all(cases)
        return
    noise = noise_of_machine(seconds)
    counted = counts()
    rows = []
    for position, case in enumerate(cases):
        bare, bare_twice, wrapped, wrapped_twice = counted[4 * position : 4 * position + 4]
        figure = (wrapped_twice - wrapped) / (bare_twice - bare)
        rows.append(Row(case.group, case.name, round(figure, 4), case.target))
    loop.close()
    title = "Instructions executed, wrapped / bare"
    report("instructions", title, rows, seconds=seconds, noise=noise)


if __name__ == "__main__":
    main()
