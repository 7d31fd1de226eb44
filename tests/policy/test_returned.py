"""What a callable of the user's returns is never judged by the truth of something to be awaited."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage
from tenacity import retry_if_exception, stop_after_delay

from conftest import ask
from langchain_retrying import Nudge, ReplyKind, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel


async def said(value):
    return value


async def pieces():
    yield False


class Later:
    """Something to be awaited that is no coroutine."""

    def __await__(self):
        return said(False).__await__()


RETURNED = [lambda *args: said(False), lambda *args: pieces(), lambda *args: Later()]


def with_remedy(call):
    return {"remedies": {ReplyKind.BLANK: [call]}}


@pytest.mark.parametrize("call", RETURNED, ids=["coroutine", "async generator", "awaitable"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("accept", lambda call: {"accept": call}),
        ("nudge", lambda call: {"nudge": call}),
        ("nudge", lambda call: with_remedy(Nudge(call))),
        ("a remedy", with_remedy),
        ("a remedy", lambda call: with_remedy((Nudge(), call))),
        ("on_exhausted", lambda call: {"on_exhausted": call, "max_retries": 0}),
        ("wait", lambda call: {"wait": call}),
        ("stop", lambda call: {"stop": call}),
        ("stop", lambda call: {"stop": stop_after_delay(9) | call}),
    ],
)
def test_a_blank_is_not_judged_by_it(way, name, arguments, call):
    """The coroutine is closed: else Python warns, and the warning is an error here."""
    model = ScriptedChatModel(["", "never"])
    policy = RetryPolicy(**{"wait": None, **arguments(call)})
    with pytest.raises(TypeError, match=f"{name} must not be async, but has returned"):
        ask(way, RetryingChatModel(model, policy))
    assert len(model.requests) == 1


@pytest.mark.parametrize("call", RETURNED, ids=["coroutine", "async generator", "awaitable"])
def test_an_exception_is_not_judged_by_it(way, call):
    for retry in (call, retry_if_exception(call)):
        model = ScriptedChatModel([TimeoutError("late"), "never"])
        with pytest.raises(TypeError, match="retry must not be async, but has returned"):
            ask(way, RetryingChatModel(model, RetryPolicy(wait=None, retry=retry)))
        assert len(model.requests) == 1


async def test_a_task_is_none_of_ours_to_end():
    tasks = []

    def accept(messages, reply):
        tasks.append(asyncio.ensure_future(said(True)))
        return tasks[0]

    with pytest.raises(TypeError, match="accept must not be async, but has returned Task"):
        await RetryingChatModel(ScriptedChatModel([""]), RetryPolicy(accept=accept)).ainvoke("Hi")
    assert await tasks[0] is True


def test_what_is_returned_at_once_is_taken_as_it_is(way):
    model = ScriptedChatModel(["", "", ""])
    policy = RetryPolicy(
        max_retries=1,
        wait=lambda state: 0.0,
        stop=lambda state: False,
        nudge=lambda messages, error: "Go on.",
        accept=lambda messages, reply: False,
        on_exhausted=lambda error: AIMessage(f"{error.attempts} attempts"),
    )
    assert ask(way, RetryingChatModel(model, policy)).content == "2 attempts"
    assert model.requests[1].messages[-1].content == "Hi\n\nGo on."
