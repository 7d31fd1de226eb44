"""One wrapper in many tasks and threads: every caller gets its own answer."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_retrying import RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel

CALLS = 200


class Blanking:
    """A script that leaves each prompt blank a number of times set by a seed, then echoes it."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.blanks = {f"prompt {i}": draw.choice([0, 0, 1, 2]) for i in range(CALLS)}
        self.asked: Counter[str] = Counter()
        self.lock = threading.Lock()

    def __call__(self, messages):
        prompt, _, _nudge = messages[0].content.partition("\n\n")
        with self.lock:
            self.asked[prompt] += 1
            return "" if self.asked[prompt] <= self.blanks[prompt] else f"re: {prompt}"


def check(script: Blanking, replies: dict) -> None:
    assert len(replies) == CALLS
    for prompt, reply in replies.items():
        assert reply.content == f"re: {prompt}"
        account = reply.response_metadata.get("empty_retry", {"attempts": 1})
        assert account["attempts"] == script.blanks[prompt] + 1
    assert sum(script.asked.values()) == CALLS + sum(script.blanks.values())


@pytest.mark.parametrize("streamed", [False, True])
async def test_many_tasks(streamed):
    script = Blanking(seed=1)
    model = RetryingChatModel(ScriptedChatModel(script), RetryPolicy(wait=None))

    async def call(prompt):
        if not streamed:
            return prompt, await model.ainvoke(prompt)
        chunks = [chunk async for chunk in model.astream(prompt)]
        return prompt, sum(chunks[1:], chunks[0])

    check(script, dict(await asyncio.gather(*map(call, script.blanks))))


@pytest.mark.parametrize("streamed", [False, True])
def test_many_threads(streamed):
    script = Blanking(seed=2)
    model = RetryingChatModel(ScriptedChatModel(script), RetryPolicy(wait=None))

    def call(prompt):
        if not streamed:
            return prompt, model.invoke(prompt)
        chunks = list(model.stream(prompt))
        return prompt, sum(chunks[1:], chunks[0])

    with ThreadPoolExecutor(16) as pool:
        check(script, dict(pool.map(call, script.blanks)))


def test_a_stream_may_be_read_from_changing_threads():
    model = RetryingChatModel(ScriptedChatModel([["", ""], ["a", "b", "c"]]))
    stream = model.stream("Hi")
    seen = []
    while len(seen) < 3:
        with ThreadPoolExecutor(1) as pool:
            seen.append(pool.submit(next, stream).result().content)
    assert seen == ["a", "b", "c"]


def test_an_async_wait_does_not_block_the_loop():
    """Also with an inner model that is sync only: its attempts run in threads."""
    ticks = []

    class SyncOnly(ScriptedChatModel):
        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            return await super(ScriptedChatModel, self)._agenerate(messages, stop, **kwargs)

    async def main():
        proceed = asyncio.Event()

        async def wait(seconds):
            ticks.append("waiting")
            await proceed.wait()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("langchain_retrying._call.clock.asleep", wait)
            policy = RetryPolicy(wait=lambda state: 60.0)
            call = asyncio.create_task(
                RetryingChatModel(SyncOnly(["", "Hello."]), policy).ainvoke("Hi")
            )
            while not ticks:
                await asyncio.sleep(0)
            ticks.append("free")
            proceed.set()
            return await call

    assert asyncio.run(main()).content == "Hello."
    assert ticks == ["waiting", "free"]
