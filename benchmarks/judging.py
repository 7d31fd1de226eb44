"""What it costs to judge a plain-text answer, beside other ways to look at a message.

    python benchmarks/judging.py [--seconds 3]

In microseconds of CPU time, the least of several rounds: the machine's speed is not steady.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from time import monotonic, process_time

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_retrying._call.calls import WholeCall
from langchain_retrying._call.held import Opening

from langchain_retrying import judge
from langchain_retrying._policy.policy import RetryPolicy
from langchain_retrying.testing import ScriptedChatModel
from shared.report import Row, noise_of_machine, progress, report, seconds_of_command_line

TEXT = "The answer is 42, as was to be expected. " * 20


CALLS = 1_000  # in a round


def micros(function: Callable[[], object], seconds: float) -> float:
    """CPU time of one call."""
    timer = timeit.Timer(function, timer=process_time)
    end = monotonic() + seconds
    least = timer.timeit(CALLS)
    while monotonic() < end:
        least = min(least, timer.timeit(CALLS))
    return round(least / CALLS * 1e6, 3)


def main() -> None:
    """Measure each way."""
    seconds = seconds_of_command_line(__doc__)
    noise = noise_of_machine(seconds)
    message = AIMessage(content=TEXT)
    result = ChatResult(generations=[ChatGeneration(message=message)])
    call = WholeCall(RetryPolicy(), [], {}, ScriptedChatModel([]))
    chunk = ChatGenerationChunk(message=AIMessageChunk(content="The"))
    blank = ChatGenerationChunk(message=AIMessageChunk(content=""))
    opening, holding = Opening(1), Opening(2**40)
    holding.add(blank)

    def add_text() -> None:
        opening.add(chunk)
        opening.drop()

    def add_blank() -> None:
        holding.add(blank)
        holding.drop()

    ways: list[tuple[str, Callable[[], object]]] = [
        ("a whole answer, as a call judges it", lambda: call.ended(result)),
        ("a chunk of text, as a call judges and holds it", add_text),
        ("a chunk without text, held", add_blank),
        ("judge(message), with its evidence", lambda: judge(message)),
        ("message.text", lambda: message.text),
        ("message.content_blocks", lambda: message.content_blocks),
    ]
    rows = [
        Row("microseconds", name, micros(function, seconds)) for name, function in progress(ways)
    ]
    report("judging", "Judging a plain-text answer", rows, seconds=seconds, noise=noise)


if __name__ == "__main__":
    main()
