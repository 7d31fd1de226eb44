"""Bad input gets a clear error at construction; policies compare by value, hash and pickle."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
import re
import threading
from unittest.mock import ANY

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    retry_if_exception_message,
    retry_if_exception_type,
    retry_if_not_exception_message,
    stop_after_attempt,
    stop_after_delay,
    stop_when_event_set,
    wait_chain,
    wait_fixed,
    wait_random,
)

from conftest import ask, named
from langchain_retrying import (
    DEFAULT_NUDGE,
    FallbackModel,
    Nudge,
    RaiseOutputBudget,
    ReplyKind,
    RetryBudget,
    RetryingChatModel,
    RetryPolicy,
    WithParams,
    stop_after_rejected_tokens,
)
from langchain_retrying._policy.policy import DEFAULT_WAIT
from langchain_retrying._policy.remedies import repeat
from langchain_retrying.testing import ScriptedChatModel
from side_by_side.small_models import SerializableModel


def shout(messages, error, extra=None):
    return "REPLY"


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
        ({"nudge": ""}, ValueError, "nudge must not be empty; write nudge=None, or repeat"),
        ({"nudge": " "}, ValueError, "nudge must not be empty; write nudge=None, or repeat"),
        ({"nudge": HumanMessage(" ")}, ValueError, "nudge must not be empty; write nudge=None"),
        ({"nudge": HumanMessage([])}, ValueError, "nudge must not be empty; write nudge=None"),
        ({"nudge": 3}, TypeError, "nudge must be a text, a message or a callable"),
        ({"nudge": async_strategy}, TypeError, "nudge must not be async"),
        ({"on_exhausted": async_strategy}, TypeError, "on_exhausted must not be async"),
        ({"nudge": HumanMessage}, TypeError, "not the class HumanMessage: call it"),
        ({"remedies": [Nudge()]}, TypeError, "remedies must be a mapping such as {ReplyKind.BLANK"),
        (
            {"remedies": {ReplyKind.ANSWER: [Nudge()]}},
            ValueError,
            "remedies: an answer is never retried; leave ReplyKind.ANSWER out",
        ),
        ({"remedies": {"odd": [Nudge()]}}, ValueError, "'odd' is not a valid ReplyKind"),
        (
            {"remedies": {"blank": Nudge()}},
            TypeError,
            "for blank must be a list of Nudge() ..., not Nudge",
        ),
        (
            {"remedies": {"blank": [Nudge()] * 3}},
            ValueError,
            "remedies for blank have 3 rungs, one for each retry, so max_retries=2 never reaches",
        ),
        (
            {"remedies": {"truncated": [RaiseOutputBudget()]}, "max_retries": 0},
            ValueError,
            "max_retries=0 never reaches the last: write max_retries=1",
        ),
        ({"remedies": {"blank": [[]]}}, TypeError, "or repeat to change nothing, not tuple"),
        ({"remedies": {"blank": [None]}}, TypeError, "or repeat to change nothing, not NoneType"),
        ({"remedies": {"blank": [Nudge]}}, TypeError, "not the class Nudge: call it"),
        ({"remedies": {"blank": [(Nudge,)]}}, TypeError, "not the class Nudge: call it"),
        ({"remedies": {"blank": ["Go on."]}}, TypeError, "a remedy for blank must be a callable"),
        ({"remedies": {"blank": [async_strategy]}}, TypeError, "for blank must not be async"),
        (
            {"remedies": {"blank": [Nudge()], "malformed": None}, "nudge": "Go on."},
            ValueError,
            "remedies replace nudge for both its kinds: write Nudge() there",
        ),
        ({"terminal_tools": "send"}, TypeError, "terminal_tools must be a list of names, not str"),
        ({"terminal_tools": 3}, TypeError, "terminal_tools must be a list of names, not int"),
        ({"terminal_tools": [len]}, TypeError, "must be a list of names, not builtin_function"),
        ({"accept": True}, TypeError, "accept must be a callable (messages, reply) that returns"),
        ({"accept": async_strategy}, TypeError, "accept must not be async"),
        ({"require_tool_call": "yes"}, TypeError, "require_tool_call must be True or False"),
        ({"hold_reasoning": None}, TypeError, "hold_reasoning must be True or False, not None"),
        ({"max_held_seconds": 0}, ValueError, "max_held_seconds must be above 0, not 0"),
        ({"max_held_seconds": float("nan")}, ValueError, "max_held_seconds must be above 0"),
        ({"max_held_seconds": "3"}, TypeError, "max_held_seconds must be a number of seconds or"),
        ({"max_held_seconds": True}, TypeError, "max_held_seconds must be a number of seconds or"),
        ({"on_exhausted": ""}, ValueError, "on_exhausted must not be an empty text"),
        ({"on_exhausted": " "}, ValueError, "on_exhausted must not be an empty text"),
        ({"on_exhausted": "Raise"}, ValueError, 'write "return" or "raise", or AIMessage'),
        ({"on_exhausted": " RETURN"}, ValueError, "on_exhausted=' RETURN' is one word"),
        (
            {"on_exhausted": "rasie"},
            ValueError,
            'is one word, and may be a slip: write "return" or "raise", or AIMessage(\'rasie\') if',
        ),
        ({"on_exhausted": "error"}, ValueError, "on_exhausted='error' is one word"),
        ({"on_exhausted": " Sorry. "}, ValueError, "on_exhausted=' Sorry. ' is one word"),
        ({"on_exhausted": "\u200b"}, ValueError, "on_exhausted must not be an empty text"),
        ({"on_exhausted": None}, TypeError, 'on_exhausted must be "return", "raise", a text'),
        ({"on_exhausted": 3}, TypeError, 'on_exhausted must be "return", "raise", a text'),
        ({"on_exhausted": ValueError}, TypeError, "not the class ValueError: call it"),
        (
            {"on_exhausted": AIMessage(content=" ")},
            ValueError,
            "on_exhausted must not be an empty text",
        ),
    ],
)
def test_wrong_arguments_are_refused_when_the_policy_is_made(arguments, error, text):
    with pytest.raises(error) as caught:
        RetryPolicy(**arguments)
    assert text in str(caught.value)


def test_the_least_that_is_allowed():
    least = RetryPolicy(max_retries=0, max_held_bytes=1)
    assert (least.max_retries, least.max_held_bytes) == (0, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"on_exhausted": "So sorry."},
        {"on_exhausted": AIMessage("Sorry.")},
        {"on_exhausted": shout},
        {"nudge": HumanMessage("Go on.")},
        {"on_exhausted": "申し訳ありません。"},
        {"on_exhausted": AIMessage("error")},
        {"nudge": Nudge("Go on.")},
        {"nudge": HumanMessage([{"type": "text", "text": "Go on."}])},
        {"remedies": {ReplyKind.BLANK: (Nudge(),)}, "nudge": "Go on."},
        {"remedies": {ReplyKind.BLANK: (), ReplyKind.MALFORMED: (repeat, repeat)}, "nudge": None},
        {"wait": functools.partial(max, 1), "stop": len, "retry": bool.__call__},
        {"remedies": {ReplyKind.TRUNCATED: (repeat, (Nudge(), WithParams(a=1)))}, "nudge": None},
        {"terminal_tools": ("send",), "accept": shout, "max_held_seconds": 0.5},
    ],
    ids=named,
)
def test_what_will_do(arguments):
    policy = RetryPolicy(**arguments)
    assert {name: getattr(policy, name) for name in arguments} == arguments


def test_the_defaults():
    assert vars(RetryPolicy()) == {
        "max_retries": 2,
        "wait": DEFAULT_WAIT,
        "stop": None,
        "retry": None,
        "nudge": DEFAULT_NUDGE,
        "remedies": None,
        "terminal_tools": (),
        "accept": None,
        "reject": None,
        "reject_within": 200,
        "hold_tool_calls": False,
        "leaked_tool_calls": False,
        "require_tool_call": False,
        "hold_reasoning": True,
        "max_held_bytes": 2**20,
        "max_held_seconds": None,
        "on_exhausted": "return",
    }


def test_the_default_waits_are_drawn_up_to_a_bound_that_doubles(monkeypatch):
    monkeypatch.setattr("random.uniform", lambda least, most: most - least)
    state = RetryCallState(Retrying(), None, (), {})
    waits = []
    for _ in range(8):
        waits.append(DEFAULT_WAIT(state))
        state.attempt_number += 1
    assert waits == [0, 0.5, 1, 2, 4, 8, 8, 8]


@pytest.mark.parametrize(("stop", "attempts"), [(None, 3), (stop_after_attempt(2), 2)])
def test_a_call_stops_at_whichever_bound_comes_first(way, stop, attempts):
    model = ScriptedChatModel([""] * 3)
    ask(way, RetryingChatModel(model, RetryPolicy(max_retries=2, wait=None, stop=stop)))
    assert len(model.requests) == attempts


def test_kinds_that_are_retried_have_a_remedy():
    for policy in (RetryPolicy(), RetryPolicy(nudge="Go on."), RetryPolicy(nudge=None)):
        assert set(policy.ladders) == {ReplyKind.BLANK, ReplyKind.MALFORMED}
    assert RetryPolicy(nudge=None).ladders[ReplyKind.BLANK] == (repeat,)
    assert RetryPolicy().ladders[ReplyKind.BLANK] == (DEFAULT_NUDGE,)
    assert RetryPolicy(nudge="Go on.").ladders[ReplyKind.MALFORMED] == (Nudge("Go on."),)


@pytest.mark.parametrize("off", [None, (), []])
def test_a_kind_is_turned_off_by_no_ladder(off):
    policy = RetryPolicy(remedies={ReplyKind.BLANK: off, ReplyKind.TRUNCATED: [repeat]})
    assert policy.ladders == {ReplyKind.MALFORMED: (DEFAULT_NUDGE,), ReplyKind.TRUNCATED: (repeat,)}
    assert policy == RetryPolicy(remedies={ReplyKind.BLANK: (), ReplyKind.TRUNCATED: [repeat]})


def test_the_names_of_terminal_tools_are_the_policys_own():
    names = ["a", "b"]
    policy = RetryPolicy(terminal_tools=names)
    names.clear()
    assert policy.terminal_tools == ("a", "b")
    assert RetryPolicy(terminal_tools={"a"}).terminal_tools == ("a",)


@pytest.mark.parametrize(
    ("nudge", "error", "text"),
    [
        ("", ValueError, "nudge must not be empty; write nudge=None, or repeat in a ladder"),
        (" \n", ValueError, "nudge must not be empty"),
        (HumanMessage(""), ValueError, "nudge must not be empty"),
        (5, TypeError, "nudge must be a text, a message or a callable"),
        (["x"], TypeError, "nudge must be a text, a message or a callable"),
        (async_strategy, TypeError, "nudge must not be async"),
    ],
)
def test_wrong_nudges_are_refused_when_they_are_made(nudge, error, text):
    with pytest.raises(error, match=re.escape(text)):
        Nudge(nudge)


class Async:
    """All forms that an async callable may have."""

    async def method(self, *args):
        return True

    async def __call__(self, *args):
        return True

    async def pieces(self, *args):
        yield True


ASYNC = [
    async_strategy,
    Async().method,
    Async(),
    Async().pieces,
    functools.partial(async_strategy, 1),
    functools.partial(functools.partial(Async().method), 1),
    functools.partial(Async()),
]


@pytest.mark.parametrize("call", ASYNC, ids=named)
@pytest.mark.parametrize(
    "name", ["accept", "nudge", "on_exhausted", "wait", "stop", "retry", "remedies"]
)
def test_async_callables_are_refused_when_the_policy_is_made(name, call):
    given = {ReplyKind.BLANK: [call]} if name == "remedies" else call
    text = "a remedy for blank" if name == "remedies" else name
    with pytest.raises(TypeError, match=f"{text} must not be async"):
        RetryPolicy(**{name: given})


@pytest.mark.parametrize("call", ASYNC, ids=named)
@pytest.mark.parametrize(
    ("name", "combine"),
    [
        ("stop", lambda call: stop_after_delay(9) | call),
        ("stop", lambda call: stop_after_delay(9) & (stop_after_delay(9) | call)),
        ("wait", lambda call: wait_fixed(9) + wait_chain(call)),
        ("retry", retry_if_exception),
        ("retry", lambda call: retry_if_exception(call) | retry_if_exception_type(OSError)),
    ],
)
def test_so_are_those_put_together_with_strategies_of_tenacity(name, combine, call):
    with pytest.raises(TypeError, match=f"{name} must not be async"):
        RetryPolicy(**{name: combine(call)})


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


@pytest.mark.parametrize(
    ("args", "kwargs", "given"),
    [
        ((MODEL,), {"max_retries": 5, "nudge": None}, "max_retries, nudge"),
        ((MODEL, RetryPolicy(), 3), {}, "a third argument"),
    ],
)
def test_a_policys_arguments_are_no_arguments_of_the_wrapper(args, kwargs, given):
    with pytest.raises(TypeError, match=rf"not {given}: write RetryingChatModel\(model, RetryPol"):
        RetryingChatModel(*args, **kwargs)


def test_both_arguments_may_be_given_by_name():
    policy = RetryPolicy(max_retries=1)
    wrapped = RetryingChatModel(inner_model=MODEL, policy=policy)
    assert wrapped.inner_model is MODEL
    assert wrapped.retry_policy is policy
    assert RetryingChatModel(MODEL).retry_policy == RetryPolicy()


def closing_over(value):
    return lambda messages, reply: bool(value)


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

    def nudge(self, messages, error):
        return self.texts[0]

    def __call__(self, messages, error):
        return self.texts[0]


@dataclasses.dataclass
class Counting:
    """A remedy of one's own; how often it was asked is no part of its value."""

    texts: list[str]
    counted: int = dataclasses.field(default=0, compare=False)

    def __call__(self, request, error):
        return request


class Named(Holding):
    """Has an `==` of its own."""

    def __eq__(self, other):
        return isinstance(other, Named) and self.texts[0].lower() == other.texts[0].lower()

    __hash__ = None


HOLDING = Holding(["a"])
EVENT = threading.Event()


def with_ladder(*ladder):
    return RetryPolicy(remedies={ReplyKind.BLANK: ladder})


EQUAL = [
    (
        with_ladder(Nudge(), (WithParams(a=1), RaiseOutputBudget())),
        with_ladder(Nudge(), [WithParams(a=1), RaiseOutputBudget()]),
    ),
    (with_ladder(FallbackModel(MODEL)), with_ladder(FallbackModel(MODEL.model_copy()))),
    (
        RetryPolicy(stop=stop_after_rejected_tokens(9) | RetryBudget()),
        RetryPolicy(stop=stop_after_rejected_tokens(9) | RetryBudget()),
    ),
    (RetryPolicy(terminal_tools=["a"]), RetryPolicy(terminal_tools=("a",))),
    (RetryPolicy(nudge=Slotted("a")), RetryPolicy(nudge=Slotted("a"))),
    (RetryPolicy(nudge=HOLDING.nudge), RetryPolicy(nudge=HOLDING.nudge)),
    (RetryPolicy(nudge=Named(["a"])), RetryPolicy(nudge=Named(["A"]))),
    (with_ladder(Counting(["a"])), with_ladder(Counting(["a"], counted=1))),
    (with_ladder(Nudge(Slotted("a"))), with_ladder(Nudge(Slotted("a")))),
    (with_ladder(Nudge(HOLDING)), with_ladder(Nudge(HOLDING))),
    (
        RetryPolicy(nudge=functools.partial(shout, extra=[1])),
        RetryPolicy(nudge=functools.partial(shout, extra=[1])),
    ),
    (
        RetryPolicy(stop=stop_when_event_set(EVENT)),
        RetryPolicy(stop=stop_when_event_set(EVENT)),
    ),
    (
        RetryPolicy(retry=retry_if_not_exception_message(match="a")),
        RetryPolicy(retry=retry_if_not_exception_message(match="a")),
    ),
    (RetryPolicy(), RetryPolicy(max_retries=2, nudge=DEFAULT_NUDGE)),
    (RetryPolicy(wait=wait_fixed(2)), RetryPolicy(wait=wait_fixed(2))),
    (
        RetryPolicy(stop=stop_after_delay(3) | stop_after_delay(4)),
        RetryPolicy(stop=stop_after_delay(3) | stop_after_delay(4)),
    ),
    (RetryPolicy(nudge=shout), RetryPolicy(nudge=shout)),
    (RetryPolicy(nudge=HumanMessage("a")), RetryPolicy(nudge=HumanMessage("a"))),
    (
        RetryPolicy(retry=retry_if_exception_type(TimeoutError)),
        RetryPolicy(retry=retry_if_exception_type(TimeoutError)),
    ),
]
DIFFERENT = [
    (with_ladder(Nudge()), RetryPolicy()),
    (with_ladder(WithParams(a=1)), with_ladder(WithParams(a=2))),
    (with_ladder(RaiseOutputBudget()), with_ladder(RaiseOutputBudget(ceiling=9))),
    (with_ladder(Nudge(), WithParams(a=1)), with_ladder((Nudge(), WithParams(a=1)))),
    (RetryPolicy(stop=RetryBudget(reserve=1)), RetryPolicy(stop=RetryBudget(reserve=2))),
    (RetryPolicy(require_tool_call=True), RetryPolicy()),
    (RetryPolicy(hold_reasoning=False), RetryPolicy()),
    (RetryPolicy(nudge=Slotted("a")), RetryPolicy(nudge=Slotted("b"))),
    (RetryPolicy(nudge=Holding(["a"])), RetryPolicy(nudge=Holding(["b"]))),
    (RetryPolicy(nudge=Holding(["a"])), RetryPolicy(nudge=Holding(["a"]))),
    (RetryPolicy(wait=Slotted("a")), RetryPolicy(wait=wait_fixed(2))),
    (RetryPolicy(nudge=Holding(["a"]).nudge), RetryPolicy(nudge=Holding(["a"]).nudge)),
    (RetryPolicy(nudge=HOLDING), RetryPolicy(nudge=HOLDING.nudge)),
    (RetryPolicy(nudge=Named(["a"])), RetryPolicy(nudge=Named(["b"]))),
    (with_ladder(Counting(["a"])), with_ladder(Counting(["b"]))),
    (
        RetryPolicy(nudge=functools.partial(shout, extra=Slotted)),
        RetryPolicy(nudge=functools.partial(shout, extra=Counting)),
    ),
    (RetryPolicy(nudge=HumanMessage("a")), RetryPolicy(nudge=HumanMessage("b"))),
    (RetryPolicy(nudge=HumanMessage("a")), RetryPolicy(nudge="a")),
    (
        RetryPolicy(stop=stop_when_event_set(EVENT)),
        RetryPolicy(stop=stop_when_event_set(threading.Event())),
    ),
    (RetryPolicy(accept=closing_over([])), RetryPolicy(accept=closing_over([]))),
    (RetryPolicy(terminal_tools=["a"]), RetryPolicy(terminal_tools=["a", "b"])),
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
    (RetryPolicy(nudge=make_nudge("a")), RetryPolicy(nudge=make_nudge("a"))),
    (RetryPolicy(nudge=lambda m, e: "a"), RetryPolicy(nudge=lambda m, e: "b")),
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


def test_a_policy_is_no_other_thing():
    assert RetryPolicy() != 2
    assert RetryPolicy() == ANY  # the other side is asked


def test_it_does_not_count_which_objects_are_one():
    """A pickled copy may share what the original has twice, or the other way round."""
    one, same = wait_fixed(1), wait_fixed(1)
    shared, apart = RetryPolicy(wait=one + one), RetryPolicy(wait=one + same)
    assert shared == apart
    assert hash(shared) == hash(apart)


class Big:
    """What holds an agent: of no interest to a policy that has a method of it."""

    def __reduce_ex__(self, protocol):
        raise AssertionError("looked into")

    def accept(self, messages, reply):
        return False


def test_a_method_is_compared_as_python_does_and_what_it_belongs_to_not_looked_into():
    one, other = Big(), Big()
    assert RetryPolicy(accept=one.accept) == RetryPolicy(accept=one.accept)
    assert RetryPolicy(accept=one.accept) != RetryPolicy(accept=other.accept)
    assert hash(RetryPolicy(accept=one.accept)) == hash(RetryPolicy(accept=one.accept))


def test_a_policy_survives_pickling():
    ladder = [Nudge("Go on."), (WithParams(a=1), RaiseOutputBudget())]
    policy = RetryPolicy(
        max_retries=3,
        wait=wait_fixed(1),
        stop=stop_after_delay(9) | RetryBudget(),
        remedies={ReplyKind.BLANK: ladder},
    )
    assert policy.budgets
    assert policy.ladders
    again = pickle.loads(pickle.dumps(policy))
    assert again == policy
    assert hash(again) == hash(policy)


def test_a_pickled_copy_without_functions_is_equal_to_it():
    policy = RetryPolicy(
        max_retries=3,
        wait=wait_chain(wait_fixed(1), wait_random(0, 2)),
        stop=(stop_after_delay(9) & stop_after_rejected_tokens(9)) | RetryBudget(share=0.5),
        nudge=HumanMessage("Go on."),
        remedies={
            ReplyKind.BLANK: [Nudge(Counting(["a"])), (WithParams(a=[1]), Counting(["a"]))],
            ReplyKind.BLOCKED: [FallbackModel(SerializableModel())],
        },
        terminal_tools=["send"],
        accept=Counting(["a"]),
        on_exhausted=AIMessage("Sorry."),
    )
    for again in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy), copy.copy(policy)):
        assert again == policy
        assert hash(again) == hash(policy)


def test_the_repr_shows_what_differs_from_the_default():
    assert repr(RetryPolicy()) == "RetryPolicy()"
    assert repr(RetryPolicy(max_retries=1, on_exhausted="raise")) == (
        "RetryPolicy(max_retries=1, on_exhausted='raise')"
    )
