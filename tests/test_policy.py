"""Bad input gets a clear error at construction; policies compare by value, hash and pickle."""

from __future__ import annotations

import dataclasses
import functools
import os
import pickle
import subprocess
import sys

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from tenacity import (
    retry_if_exception_message,
    retry_if_exception_type,
    stop_after_delay,
    wait_fixed,
    wait_random,
)

from langchain_retrying import DEFAULT_NUDGE, Nudge, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel


async def async_strategy(state):
    return True


class AsyncStrategy:
    async def __call__(self, state):
        return 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"max_retries": -1}, ValueError, "max_retries must be at least 0, not -1"),
        ({"max_retries": "2"}, TypeError, "max_retries must be an int, not str"),
        ({"max_retries": True}, TypeError, "max_retries must be an int, not bool"),
        ({"max_retries": 2.0}, TypeError, "max_retries must be an int, not float"),
        ({"max_held_bytes": 0}, ValueError, "max_held_bytes must be at least 1, not 0"),
        ({"max_held_bytes": None}, TypeError, "max_held_bytes must be an int, not NoneType"),
        ({"wait": 2}, TypeError, "wait must be a tenacity wait strategy such as wait_fixed"),
        ({"wait": wait_fixed}, TypeError, "not the class wait_fixed: call it"),
        ({"wait": AsyncStrategy()}, TypeError, "wait must not be async"),
        ({"stop": 30}, TypeError, "stop must be a tenacity stop strategy such as stop_after_delay"),
        ({"stop": stop_after_delay}, TypeError, "not the class stop_after_delay: call it"),
        ({"stop": async_strategy}, TypeError, "stop must not be async"),
        ({"retry": TimeoutError}, TypeError, "not the class TimeoutError: call it"),
        ({"retry": "always"}, TypeError, "retry must be a tenacity retry predicate such as"),
        ({"retry": async_strategy}, TypeError, "retry must not be async"),
        ({"nudge": ""}, ValueError, "nudge must not be empty; write nudge=None to repeat"),
        ({"nudge": 3}, TypeError, "nudge must be a text, a message or a callable"),
        ({"nudge": async_strategy}, TypeError, "nudge must not be async"),
        ({"on_exhausted": async_strategy}, TypeError, "on_exhausted must not be async"),
        ({"nudge": HumanMessage}, TypeError, "not the class HumanMessage: call it"),
        ({"on_exhausted": ""}, ValueError, "on_exhausted must not be an empty text"),
        ({"on_exhausted": "Raise"}, ValueError, "on_exhausted='Raise': write 'raise'"),
        ({"on_exhausted": None}, TypeError, 'on_exhausted must not be None; write "return"'),
        ({"on_exhausted": 3}, TypeError, 'on_exhausted must be "return", "raise", a text'),
        ({"on_exhausted": ValueError}, TypeError, "not the class ValueError: call it"),
        (
            {"on_exhausted": AIMessage(content=" ")},
            ValueError,
            "on_exhausted must not be an empty AIMessage",
        ),
    ],
)
def test_wrong_arguments_are_refused_when_the_policy_is_made(arguments, error, text):
    with pytest.raises(error) as caught:
        RetryPolicy(**arguments)
    assert text in str(caught.value)


def test_the_policy_is_frozen():
    with pytest.raises(AttributeError):
        RetryPolicy().max_retries = 3


MODEL = ScriptedChatModel([])


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (None, "the model to wrap is missing"),
        ("openai:gpt-5", "'openai:gpt-5' is a name: write init_retrying_chat_model"),
        (ScriptedChatModel, "ScriptedChatModel is a class: give an instance of it"),
        (MODEL.with_fallbacks([MODEL]), "holds several models: wrap each before with_fallbacks()"),
        (RunnableLambda(str).bind(a=1), "must be a BaseChatModel, not RunnableLambda"),
        (RunnableLambda(str), "inner_model must be a BaseChatModel, not RunnableLambda"),
        (42, "inner_model must be a BaseChatModel, not int"),
    ],
)
def test_what_is_not_a_chat_model_gets_an_error_that_says_what_to_write(inner, text):
    with pytest.raises(TypeError) as caught:
        RetryingChatModel(inner)
    assert text in str(caught.value)


def test_what_is_not_a_policy_is_refused():
    with pytest.raises(TypeError, match="policy must be a RetryPolicy, not int"):
        RetryingChatModel(MODEL, 3)


def test_both_arguments_may_be_given_by_name():
    policy = RetryPolicy(max_retries=1)
    wrapped = RetryingChatModel(inner_model=MODEL, policy=policy)
    assert wrapped.inner_model is MODEL
    assert wrapped.retry_policy is policy
    assert RetryingChatModel(MODEL).retry_policy == RetryPolicy()


def shout(messages, error, extra=None):
    return "REPLY"


def make_nudge(text):
    return lambda messages, error: text


@dataclasses.dataclass(frozen=True)
class Slotted:
    __slots__ = ("text",)
    text: str

    def __call__(self, messages, error):
        return self.text


class Holding:
    def __init__(self, texts):
        self.texts = texts
        self.me = self

    def nudge(self, messages, error):
        return self.texts[0]


def unfilled():
    def nudge(messages, error):
        return later

    policy = RetryPolicy(nudge=nudge)
    hash(policy)
    later = "a"
    return policy


EQUAL = [
    (RetryPolicy(nudge=Slotted("a")), RetryPolicy(nudge=Slotted("a"))),
    (RetryPolicy(nudge=Holding(["a"]).nudge), RetryPolicy(nudge=Holding(["a"]).nudge)),
    (unfilled(), unfilled()),
    (RetryPolicy(), RetryPolicy(max_retries=2, nudge=DEFAULT_NUDGE)),
    (RetryPolicy(wait=wait_fixed(2)), RetryPolicy(wait=wait_fixed(2))),
    (
        RetryPolicy(stop=stop_after_delay(3) | stop_after_delay(4)),
        RetryPolicy(stop=stop_after_delay(3) | stop_after_delay(4)),
    ),
    (RetryPolicy(nudge=shout), RetryPolicy(nudge=shout)),
    (RetryPolicy(nudge=make_nudge("a")), RetryPolicy(nudge=make_nudge("a"))),
    (RetryPolicy(nudge=HumanMessage("a")), RetryPolicy(nudge=HumanMessage("a"))),
    (
        RetryPolicy(retry=retry_if_exception_type(TimeoutError)),
        RetryPolicy(retry=retry_if_exception_type(TimeoutError)),
    ),
]
DIFFERENT = [
    (RetryPolicy(nudge=Slotted("a")), RetryPolicy(nudge=Slotted("b"))),
    (RetryPolicy(nudge=Holding(["a"]).nudge), RetryPolicy(nudge=Holding(["b"]).nudge)),
    (
        RetryPolicy(nudge=lambda m, e, *, t="a": t),
        RetryPolicy(nudge=lambda m, e, *, t="b": t),
    ),
    (
        RetryPolicy(retry=retry_if_exception_message(match="a")),
        RetryPolicy(retry=retry_if_exception_message(match="b")),
    ),
    (
        RetryPolicy(nudge=functools.partial(shout, extra=1)),
        RetryPolicy(nudge=functools.partial(shout, extra=2)),
    ),
    (RetryPolicy(), RetryPolicy(max_retries=3)),
    (RetryPolicy(wait=wait_fixed(2)), RetryPolicy(wait=wait_fixed(3))),
    (RetryPolicy(wait=wait_fixed(2)), RetryPolicy(wait=wait_random(2))),
    (RetryPolicy(nudge=make_nudge("a")), RetryPolicy(nudge=make_nudge("b"))),
    (RetryPolicy(nudge=lambda m, e: "a"), RetryPolicy(nudge=lambda m, e: "b")),
    (RetryPolicy(nudge=lambda m, e: m.a), RetryPolicy(nudge=lambda m, e: m.b)),
    (RetryPolicy(nudge=None), RetryPolicy()),
    (
        RetryPolicy(retry=retry_if_exception_type(TimeoutError)),
        RetryPolicy(retry=retry_if_exception_type(OSError)),
    ),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_policies_of_equal_parts_are_equal(one, other):
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_policies_of_different_parts_differ(one, other):
    assert one != other


def test_a_function_that_closes_over_itself_has_a_value():
    def nudge(messages, error):
        return nudge.__name__

    assert RetryPolicy(nudge=nudge) == RetryPolicy(nudge=nudge)


def test_a_policy_is_no_other_thing():
    assert RetryPolicy() != 2


def test_a_policy_survives_pickling():
    policy = RetryPolicy(max_retries=3, wait=wait_fixed(1), nudge=Nudge("Go on."))
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_the_fingerprint_is_the_same_in_every_process():
    code = (
        "from langchain_retrying import RetryPolicy; from tenacity import *;"
        "print(RetryPolicy(wait=wait_fixed(2) + wait_random(0, 1), stop=stop_after_delay(9),"
        " retry=retry_if_exception_type((OSError, KeyError)),"
        " nudge=lambda m, e: 'Go' if m in {'a', 'b', 'c'} else None).fingerprint)"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(prints) == 1
    assert " at 0x" not in prints.pop()


def test_the_repr_shows_what_differs_from_the_default():
    assert repr(RetryPolicy()) == "RetryPolicy()"
    assert repr(RetryPolicy(max_retries=1, on_exhausted="raise")) == (
        "RetryPolicy(max_retries=1, on_exhausted='raise')"
    )
