"""A call that is over keeps nothing alive: no prompt, no reply, without the garbage collector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref

import pytest
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, HumanMessage
from tenacity import retry_if_exception_type

from conftest import ask
from langchain_retrying import Nudge, RaiseOutputBudget, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel


class Forgetful(ScriptedChatModel):
    """Does not record what it is sent."""

    def _next(self, messages, stop, kwargs, *, streamed):
        reply = super()._next([], stop, {}, streamed=streamed)
        if reply == ("time out",):
            raise TimeoutError
        if reply == ("no chunk",):  # as LangChain tells it
            generate_from_stream(iter([]))
        return reply


CASES = {
    "an answer": (["Hello"], RetryPolicy()),
    "a blank, then an answer": (["", "Hello"], RetryPolicy()),
    "returned empty": ([" "] * 3, RetryPolicy(wait=None)),
    "a text in its place": ([" "] * 3, RetryPolicy(wait=None, on_exhausted="So sorry.")),
    "raised": ([" "] * 3, RetryPolicy(wait=None, on_exhausted="raise")),
    "an exception": (["time out"], RetryPolicy()),
    "an exception in a retry": ([" ", "time out"], RetryPolicy()),
    "a blank in disguise, then an answer": (["no chunk", "Hello"], RetryPolicy()),
    "a blank in disguise, raised": (["no chunk"] * 3, RetryPolicy(wait=None)),
    "a text in its place, too": (
        ["no chunk"] * 3,
        RetryPolicy(wait=None, on_exhausted="There is no answer."),
    ),
    "nothing at all": ([[]] * 3, RetryPolicy(wait=None)),
    "an output budget that is kept": (
        [AIMessage("", response_metadata={"finish_reason": "length"}), "", "Hello"],
        RetryPolicy(
            wait=None,
            remedies={"truncated": [RaiseOutputBudget(ceiling=9)], "blank": [Nudge()]},
        ),
    ),
    "an exception, retried": (
        ["time out", "Hello"],
        RetryPolicy(retry=retry_if_exception_type(TimeoutError)),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _nothing_older():
    """What other tests have left is not looked through again for each of these."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("case", CASES)
def test_the_prompt_is_freed_with_the_call(way, case):
    script, policy = CASES[case]
    model = RetryingChatModel(Forgetful(script), policy)
    asyncio.run(asyncio.sleep(0))

    def call():
        prompt = HumanMessage("Hi")
        reference = weakref.ref(prompt)
        with contextlib.suppress(Exception):
            ask(way, model, [prompt])
        return reference

    gc.collect()
    gc.disable()
    try:
        reference = call()
        if way.startswith("a"):
            gc.collect(0)  # asyncio's own, of the loop that has been closed
        assert reference() is None
    finally:
        gc.enable()


def test_a_rejected_reply_is_freed_before_the_answer_is_there(way):
    alive = []

    class Watching(ScriptedChatModel):
        pass

    references = []

    def reply(messages):
        alive.append(sum(reference() is not None for reference in references))
        message = AIMessage(" " * (len(alive) < 4))
        references.append(weakref.ref(message))
        return message if len(alive) < 4 else AIMessage("Hello")

    ask(way, RetryingChatModel(Watching(reply), RetryPolicy(max_retries=5, wait=None)))
    assert max(alive) <= 1
