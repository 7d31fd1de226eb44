"""A soak: a wrapped ChatOpenAI called in all ways at once, on a server that fails in all ways.

Of each call it is checked that it has the one outcome that is right for what was served to it, and
in the end that nothing is left behind.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from langchain_openai import ChatOpenAI
from tenacity import retry_if_exception_type

from langchain_retrying import RetryingChatModel, RetryPolicy, is_empty_ai_message
from wire.faults import FAULTS, Faults
from wire.outcomes import is_error, outcome_of
from wire.replies import Ending
from wire.server import WireServer
from wire.uses import WAYS, Call

POLICIES = (
    RetryPolicy(wait=None),
    RetryPolicy(wait=None, retry=retry_if_exception_type(), on_exhausted="raise"),
)
WEIGHTS = dict.fromkeys(("agent", "agent_async", "agent_streamed", "batch", "abatch"), 0.25)
"""Of the ways that take several requests; the others have 1."""
KINDS = {"answer": 0.4, "empty": 0.4, "error": 0.2, "stall": 0.0}
"""Shares of what requests are answered with."""
STALLED = 0.04
"""Share of calls that may meet a stall."""
BATCH = 4
THREADS = 8
TASKS = 16
HASTY_SECONDS = 1.0
"""How long a client waits that is going to meet a stall; the others wait for a minute."""
LONGEST_SECONDS = 120.0
"""What has no outcome by then never has one."""
SETTLED_SECONDS = 5.0
"""How long may pass until the server has noticed that clients have hung up, and threads end."""
MOST_OBJECTS = 0.1
"""How many Python objects may be left of a call, on average, after the first third."""
MOST_CACHED = 500
"""How many may be left of all calls together."""
MOST_MEGABYTES = 24
"""By how much the process may grow after its first third."""


class BrokenInvariantError(AssertionError):
    """Something that must not happen has happened."""


@dataclass
class Tally:
    """What a soak came to."""

    calls: int = 0
    requests: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    objects: list[Counter[str]] = field(default_factory=list)
    """Python objects after each third, by type."""
    peak_megabytes: list[float] = field(default_factory=list)


Seen = Callable[[], object]
"""Told when another call, or batch of calls, is over."""


def soak(calls: int, seed: int, seconds: float = 3600.0, seen: Seen = lambda: None) -> Tally:
    """Make so many calls, or as many as are over in so many seconds, and check them.

    Raises:
        BrokenInvariantError: At the first thing that is wrong.

    """
    before = _belongings()
    with WireServer(Faults()) as server:  # also warms up what is made once in a process
        errors = _errors_of_bare(server)
    gc.collect()
    gc.freeze()  # what is there already needs no more looking through
    try:
        tally = asyncio.run(_Soak(seed, errors, seen).run(calls, seconds))
        gc.collect()
        deadline = time.monotonic() + SETTLED_SECONDS
        while any(count > before[kind] for kind, count in _belongings().items()):
            if time.monotonic() > deadline:
                left = f"{before} before, {_belongings()} after"
                raise BrokenInvariantError(f"seed {seed}: left behind: {left}")
            time.sleep(0.01)
    finally:
        gc.unfreeze()
    return tally


def draw(seed: int, number: int) -> tuple[str, tuple[str, ...], RetryPolicy]:
    """The way, the script and the policy of a call: the same for the same seed and number."""
    random = Random(f"{seed} {number}")
    kinds = Counter(map(_kind, FAULTS))
    weights = [KINDS[_kind(name)] / kinds[_kind(name)] for name in FAULTS]
    script = random.choices(list(FAULTS), weights, k=6)
    if random.random() < STALLED:
        script[random.randrange(3)] = random.choice(list(filter(_stalls, FAULTS)))
    way = random.choices(list(WAYS), [WEIGHTS.get(way, 1) for way in WAYS])[0]
    if way == "astream_cancelled":
        # While the client waits: httpcore leaks a request that is cancelled while it is closed.
        script = ["stall-in-answer" if FAULTS[name].visible else name for name in script]
    return way, tuple(script), random.choice(POLICIES)


def _stalls(name: str) -> bool:
    return FAULTS[name].ending is Ending.STALL


def _kind(name: str) -> str:
    fault = FAULTS[name]
    if _stalls(name):
        return "stall"
    return "error" if is_error(fault) else "answer" if fault.visible else "empty"


def _model(server: WireServer, seconds: float) -> ChatOpenAI:
    return ChatOpenAI(
        model="model-a",
        base_url=f"{server.url}/v1",
        api_key="none",
        max_retries=0,
        timeout=seconds,
    )


def _errors_of_bare(server: WireServer) -> dict[tuple[str, bool], str]:
    """What class of exception the bare model makes of each fault, whole and streamed."""
    model = _model(server, 60.0)
    errors = {(name, streamed): "timeout" for name in FAULTS for streamed in (False, True)}
    for name, streamed in errors:
        if is_error(FAULTS[name]) and not _stalls(name):
            way = "stream" if streamed else "invoke"
            call = Call(f"{name}-{way}", (name,), way)
            try:
                WAYS[way](model, call)
            except Exception as error:
                errors[name, streamed] = type(error).__name__
            else:
                raise BrokenInvariantError(f"{call}: the bare model does not raise")
    return errors


class _Soak:
    def __init__(self, seed: int, errors: Mapping[tuple[str, bool], str], seen: Seen) -> None:
        self.faults = Faults()
        self.server = WireServer(self.faults)
        self.seed = seed
        self.errors = errors
        self.seen = seen
        self.tally = Tally()
        self.complaints: list[str] = []
        """What the event loop has to say of tasks and generators that nobody cares for."""
        self.models = {
            (policy, hasty): RetryingChatModel(_model(self.server, seconds), policy)
            for policy in POLICIES
            for hasty, seconds in ((True, HASTY_SECONDS), (False, 60.0))
        }

    async def run(self, calls: int, seconds: float) -> Tally:
        """Make the calls in three parts, and see after each what has been left."""
        self.deadline = time.monotonic() + seconds
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: self.complaints.append(f"{context}")
        )
        with self.server, ThreadPoolExecutor(THREADS) as self.pool:
            for third in range(3):
                numbers = iter(range(calls * third // 3, calls * (third + 1) // 3))
                workers = [asyncio.create_task(self._work(numbers)) for _ in range(TASKS)]
                try:
                    await asyncio.gather(*workers)
                finally:
                    for worker in workers:
                        worker.cancel()
                await self._look_around()
        self._compare()
        return self.tally

    async def _work(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            if time.monotonic() > self.deadline:
                return
            way, script, policy = draw(self.seed, number)
            if way in ("batch", "abatch"):
                scripts = [draw(self.seed, number * BATCH + i)[1] for i in range(BATCH)]
                calls = [Call(f"{number}-{i}", part, way) for i, part in enumerate(scripts)]
            else:
                calls = [Call(str(number), script, way)]
            await self._use(calls, policy)
            self.seen()

    async def _use(self, calls: list[Call], policy: RetryPolicy) -> None:
        way = WAYS[calls[0].way]
        hasty = any(map(_stalls, itertools.chain.from_iterable(call.script for call in calls)))
        model = self.models[policy, hasty]
        if asyncio.iscoroutinefunction(way):
            use = way(model, *calls)
        else:
            use = asyncio.get_running_loop().run_in_executor(self.pool, way, model, *calls)
        future = asyncio.ensure_future(use)
        await asyncio.wait({future}, timeout=LONGEST_SECONDS)
        if not future.done():
            raise BrokenInvariantError(f"seed {self.seed}, {calls[0]}: no outcome")
        calls[0].error = calls[0].error or future.exception()
        self.server.requests.clear()  # nobody reads them, and memory is watched
        for call in calls:
            served = self.faults.served.pop(call.name, [])
            self.tally.requests += len(served)
            try:
                self._check(call, served, policy)
            except AssertionError as error:
                told = "\n  ".join([f"{error}; raised: {call.error!r}", *map(str, served)])
                raise BrokenInvariantError(f"seed {self.seed}, {call}: {told}") from call.error

    def _check(self, call: Call, served: list[Any], policy: RetryPolicy) -> None:
        listener, text = call.listener, "".join(call.pieces)
        if isinstance(call.error, AssertionError):
            raise call.error
        error = None if call.error is None else type(call.error).__name__
        if error is not None and "Timeout" in error and any(map(_stalls, call.script)):
            error = "timeout"
        right = outcome_of(served, policy, self.errors)
        if call.stopped:
            assert right.text.startswith(text), f"{text!r} is no part of {right.text!r}"
            assert error is None, f"{error} after the consumer had stopped"
        else:
            assert error == right.error, f"{error} in place of {right.error}"
            shown = right.text if right.error is None or served[-1].streamed else ""
            assert text == shown, f"{text!r} in place of {shown!r}"
        if error is None and not call.stopped and call.reply is not None:
            assert is_empty_ai_message(call.reply) == right.empty, f"{call.reply!r}"
            account = call.reply.response_metadata.get("empty_retry", {"attempts": 1})
            told = listener.retries_of_last + 1
            assert account["attempts"] == told, f"{account} of {told} attempts"
        assert listener.starts == right.runs, f"{listener.starts} starts of {right.runs}"
        overs = listener.ends, listener.errors
        assert sum(overs) == right.runs, f"{overs} ends and errors of {right.runs} runs"
        assert listener.retries == len(served) - right.runs, f"{listener.retries} retries told"
        tokens = "".join(listener.tokens)
        if call.stopped:  # LangChain reports a chunk before it is taken
            assert right.text.startswith(tokens), f"tokens {tokens!r} of {right.text!r}"
        elif served[-1].streamed and right.error is None:
            assert tokens == text, f"tokens {tokens!r} for {text!r}"
        self.tally.calls += 1
        self.tally.ways[call.way] += 1
        kind = "empty" if right.empty else "answer" if error is None else "error"
        self.tally.outcomes["stopped" if call.stopped else kind] += 1

    async def _look_around(self) -> None:
        """See that nothing is under way, and take stock of memory."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while self.server.open_bodies or len(asyncio.all_tasks()) > 1:
            if time.monotonic() > deadline:
                left = f"{self.server.open_bodies} streams and {asyncio.all_tasks()} left"
                raise BrokenInvariantError(f"seed {self.seed}: {left}")
            await asyncio.sleep(0.01)
        for _ in range(3):  # an async generator that is collected is closed by the loop
            gc.collect()
            await asyncio.sleep(0)
        if self.complaints:
            raise BrokenInvariantError(f"seed {self.seed}: {self.complaints}")
        self.tally.objects.append(Counter(type(thing).__qualname__ for thing in gc.get_objects()))
        self.tally.peak_megabytes.append(_peak_megabytes())

    def _compare(self) -> None:
        first, _, last = self.tally.objects
        left = last.total() - first.total()
        if left > MOST_CACHED + MOST_OBJECTS * self.tally.calls * 2 / 3:
            most = (last - first).most_common(10)
            raise BrokenInvariantError(f"seed {self.seed}: {left} objects more, such as {most}")
        grown = self.tally.peak_megabytes[-1] - self.tally.peak_megabytes[0]
        if grown > MOST_MEGABYTES:
            raise BrokenInvariantError(f"seed {self.seed}: the process has grown by {grown:.0f} MB")


def _belongings() -> dict[str, int]:
    return {"threads": threading.active_count(), "files": len(list(Path("/dev/fd").iterdir()))}


def _peak_megabytes() -> float:
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
