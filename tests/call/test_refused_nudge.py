"""A provider that does not take the nudge, as Mistral after a tool's turn, still gets its retry."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, ToolMessage

from conftest import WAYS, ask
from langchain_retrying import Nudge, ReplyKind, RetryingChatModel, RetryPolicy, WithParams
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import build
from wire.replies import failure
from wire.turns import BLANK, GOOD

CALL = {"name": "lookup", "args": {}, "id": "call_1", "type": "tool_call"}
AFTER_A_TOOL = [
    HumanMessage("Hi"),
    AIMessage("", tool_calls=[CALL]),
    ToolMessage("42", tool_call_id="call_1"),
]


def after_a_tool(request):
    """Refuses a user who speaks right after a tool."""
    roles = [message["role"] for message in request["json"]["messages"]]
    if roles[-2:] == ["tool", "user"]:
        return failure({"message": "Expected last role Assistant"})
    return None


def play(server, blanks: int, refuses=after_a_tool) -> RetryingChatModel:
    server.play(*[BLANK] * blanks, GOOD, unless=refuses)
    return build({"class": "ChatOpenAI"}, server.url)


def test_the_refused_request_is_made_again_without_the_nudge(server, way, caplog):
    model = play(server, blanks=1)
    with caplog.at_level(logging.WARNING):
        reply = ask(way, RetryingChatModel(model), AFTER_A_TOOL)
    assert reply.content == "Recovered."
    assert (len(server.requests), server.refused) == (2, 1)
    account = reply.response_metadata["empty_retry"]
    assert (account["attempts"], len(account["rejected"])) == (3, 1)
    assert "Nudge refused in attempt 2" in caplog.text


def test_it_is_remembered_for_the_call(server, way):
    model = play(server, blanks=2)
    policy = RetryPolicy(max_retries=3, wait=None)
    assert ask(way, RetryingChatModel(model, policy), AFTER_A_TOOL).content == "Recovered."
    assert (len(server.requests), server.refused) == (3, 1)


def test_within_the_same_bounds_it_ends_as_the_blank_that_it_was(server, way, caplog):
    model = play(server, blanks=1)
    with caplog.at_level(logging.WARNING):
        reply = ask(way, RetryingChatModel(model, RetryPolicy(max_retries=1)), AFTER_A_TOOL)
    assert caplog.records[-1].getMessage().startswith("Empty completion (blank)")
    assert reply.content == ""
    assert reply.response_metadata["finish_reason"] == "stop"
    assert reply.response_metadata["empty_retry"]["attempts"] == 2
    assert (len(server.requests), server.refused) == (1, 1)


def test_mistrals_own_integration_is_nudged_where_mistral_allows_it(server, way):
    """In the tool's result: nothing is refused, and the nudge is heard."""
    server.play(BLANK, GOOD, unless=after_a_tool)
    model = build({"class": "ChatMistralAI"}, server.url)
    call = AIMessage("", tool_calls=[{**CALL, "id": "D681PevKs"}])
    prompt = [HumanMessage("Hi"), call, ToolMessage("42", tool_call_id="D681PevKs")]
    reply = ask(way, RetryingChatModel(model, RetryPolicy(nudge="Go on.")), prompt)
    assert reply.content == "Recovered."
    first, second = (request["json"]["messages"] for request in server.requests)
    assert server.refused == 0
    assert [message["content"] for message in (first[-1], second[-1])] == ["42", "42\n\nGo on."]
    assert second[:-1] == first[:-1]


@pytest.mark.parametrize("way_", ["invoke", "stream"])
def test_geminis_refusal_is_one(server, way_):
    error = {"error": {"code": 400, "message": "bad", "status": "INVALID"}}
    server.play(BLANK, failure(error), GOOD)
    model = build({"class": "ChatGoogleGenerativeAI"}, server.url)
    assert "Recovered." in str(ask(way_, RetryingChatModel(model)).content)
    first, _, third = (request["json"] for request in server.requests)
    assert third == first


@pytest.mark.parametrize("way_", WAYS)
def test_other_changes_to_the_refused_request_stay(way_):
    model = ScriptedChatModel(["", RefusalError(status_code=400), "Hello."])
    rung = (Nudge("Go on."), WithParams(temperature=1.0))
    policy = RetryPolicy(remedies={ReplyKind.BLANK: [rung]})
    assert ask(way_, RetryingChatModel(model, policy)).content == "Hello."
    _, nudged, last = model.requests
    ends = [request.messages[-1].content for request in model.requests]
    assert ends == ["Hi", "Hi\n\nGo on.", "Hi"]
    assert last.kwargs == nudged.kwargs == {"temperature": 1.0}


def test_a_refusal_of_other_changes_goes_through(way):
    """It tells of parameters that the provider does not know, which is to be seen."""
    model = ScriptedChatModel(["", RefusalError(status_code=400), "never"])
    policy = RetryPolicy(remedies={ReplyKind.BLANK: [WithParams(temperatur=1.0)]})
    with pytest.raises(RefusalError) as caught:
        ask(way, RetryingChatModel(model, policy))
    assert "attempt 2 of a call" in caught.value.__notes__[0]


class RefusalError(Exception):
    def __init__(self, text="refused", **attributes):
        super().__init__(text)
        vars(self).update(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"status_code": 400},
        {"status_code": 422},
        {"code": 400},
        {"response": SimpleNamespace(status_code=400)},
        {"response": {"ResponseMetadata": {"HTTPStatusCode": 400}}},
        {"__cause__": 400},
    ],
    ids=["status_code", "422", "code", "response", "botocore", "cause"],
)
def test_a_refusal_is_known_by_its_status(way, attributes):
    if "__cause__" in attributes:  # as langchain-google-genai raises it
        error = RuntimeError()
        error.__cause__ = RefusalError(code=400)
    else:
        error = RefusalError(**attributes)
    model = ScriptedChatModel(["", error, "Hello."])
    assert ask(way, RetryingChatModel(model)).content == "Hello."
    first, nudged, last = (request.messages for request in model.requests)
    assert nudged[0].content.startswith("Hi\n\n")
    assert last == first


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"status_code": 500},
        {"response": {}},
        {"response": {"ResponseMetadata": None}},
        {"code": "400"},
    ],
    ids=str,
)
def test_other_errors_of_a_nudged_request_go_through(way, attributes):
    model = ScriptedChatModel(["", RefusalError(**attributes), "never"])
    with pytest.raises(RefusalError):
        ask(way, RetryingChatModel(model))


def test_a_refused_first_request_goes_through_and_so_does_a_silent_repeat(way):
    for policy, script in (
        (RetryPolicy(), [RefusalError(status_code=400), "never"]),
        (RetryPolicy(nudge=None), ["", RefusalError(status_code=400), "never"]),
    ):
        with pytest.raises(RefusalError):
            ask(way, RetryingChatModel(ScriptedChatModel(script), policy))


# Chat templates that take turns of user and assistant only


@pytest.fixture(params=[500, 400])
def strict(request):
    """Refuses two turns of one role in a row, as llama.cpp's server and vLLM do."""
    message = "Conversation roles must alternate user/assistant/user/assistant/..."

    def refuses(asked):
        roles = [message["role"] for message in asked["json"]["messages"]]
        if any(one == other for one, other in pairwise(roles)):
            return failure({"error": {"code": None, "message": message}}, request.param)
        return None

    return refuses


def ends_of(server) -> list[str]:
    return [request["json"]["messages"][-1]["content"] for request in server.requests]


def test_a_nudge_becomes_part_of_the_users_turn(server, strict, way):
    model = play(server, blanks=1, refuses=strict)
    prompt = [HumanMessage("Hi"), AIMessage("Yes?"), HumanMessage([{"type": "text", "text": "So"}])]
    before = [message.model_copy(deep=True) for message in prompt]
    for asked, end in (
        (prompt[:1], "Hi\n\nGo on."),
        (prompt, [{"type": "text", "text": "So"}, {"type": "text", "text": "Go on."}]),
    ):
        play(server, blanks=1, refuses=strict)
        reply = ask(way, RetryingChatModel(model, RetryPolicy(nudge="Go on.")), asked)
        assert reply.content == "Recovered."
        assert ends_of(server)[1] == end
    assert server.refused == 0
    assert prompt == before


def test_a_nudge_given_as_a_message_is_left_out_where_it_is_refused(server, strict, way, caplog):
    model = play(server, blanks=1, refuses=strict)
    policy = RetryPolicy(nudge=HumanMessage("Go on."))
    assert ask(way, RetryingChatModel(model, policy)).content == "Recovered."
    assert (server.refused, ends_of(server)) == (1, ["Hi", "Hi"])
    assert "Nudge refused in attempt 2" in caplog.text


@pytest.mark.parametrize("last", [AIMessage("It is"), ChatMessage("It is", role="assistant")])
@pytest.mark.parametrize("nudge", ["Go on.", HumanMessage("Go on."), Nudge()])
def test_a_prefill_is_repeated_silently(way, last, nudge):
    """The reply continues it."""
    model = ScriptedChatModel(["", "42."])
    prompt = [HumanMessage("What is it?"), last]
    assert ask(way, RetryingChatModel(model, RetryPolicy(nudge=nudge)), prompt).content == "42."
    assert [request.messages for request in model.requests] == [prompt] * 2


def test_a_prefill_on_the_wire(server, strict, way):
    model = play(server, blanks=1, refuses=strict)
    prompt = [HumanMessage("What is it?"), AIMessage("It is")]
    assert ask(way, RetryingChatModel(model), prompt).content == "Recovered."
    assert (server.refused, ends_of(server)) == (0, ["It is", "It is"])


class TemplateError(Exception):
    """As jinja2 raises it in a model that runs in this process."""


@pytest.mark.parametrize(
    "error",
    [
        RefusalError("After the optional system message, roles must ...", status_code=500),
        RefusalError("roles must alternate", code=500),
        RefusalError("Jinja Exception", status_code=503),
        TemplateError("chat template: unexpected turn"),
    ],
    ids=repr,
)
def test_so_are_errors_that_name_roles_or_the_template(way, error):
    model = ScriptedChatModel(["", error, "Hello."])
    assert ask(way, RetryingChatModel(model)).content == "Hello."
    first, _, last = (request.messages for request in model.requests)
    assert last == first


@pytest.mark.parametrize(
    "error",
    [
        RefusalError("Internal server error", status_code=500),
        RefusalError("You lack the role of an owner", status_code=403),
        RefusalError("alternating limits", status_code=429),
        TimeoutError("patrolled"),
    ],
    ids=repr,
)
def test_and_others_are_not(way, error):
    model = ScriptedChatModel(["", error, "never"])
    with pytest.raises(type(error)):
        ask(way, RetryingChatModel(model))


def test_only_the_nudge_is_left_out_of_the_ladder(way):
    def trim(request, error):
        return replace(request, messages=request.messages[-1:])

    ladder = [(trim, Nudge("Go on.")), WithParams(a=1), trim]
    model = ScriptedChatModel(["", RefusalError(status_code=400), "", " ", "Hello."])
    policy = RetryPolicy(4, wait=None, remedies={ReplyKind.BLANK: ladder})
    prompt = [HumanMessage("One"), AIMessage("Two"), HumanMessage("Three")]
    assert ask(way, RetryingChatModel(model, policy), prompt).content == "Hello."
    ends = [[message.content for message in request.messages] for request in model.requests]
    whole, cut = ["One", "Two", "Three"], ["Three"]
    assert ends == [whole, ["Three\n\nGo on."], cut, whole, cut]


def test_a_nudge_within_a_remedy_of_ones_own_is_left_out_too(way):
    model = ScriptedChatModel(["", RefusalError(status_code=400), "Hello."])

    def mine(request, error):
        return Nudge("Go on.")(request, error)

    remedies = {ReplyKind.BLANK: [mine]}
    assert ask(way, RetryingChatModel(model, RetryPolicy(remedies=remedies))).content == "Hello."
    assert [request.messages[-1].content for request in model.requests][-1] == "Hi"


@pytest.mark.parametrize("length", [1, 2])
def test_causes_in_a_circle_end(way, length):
    errors = [RefusalError() for _ in range(length)]
    for position, error in enumerate(errors):
        error.__cause__ = errors[(position + 1) % length]
    with pytest.raises(RefusalError):
        ask(way, RetryingChatModel(ScriptedChatModel(["", errors[0], "never"])))


class GraphBubbleUp(Exception):  # noqa: N818 -- as LangGraph names it
    """What LangGraph interrupts a graph with."""


@pytest.mark.parametrize(
    "error",
    [GraphBubbleUp("the role of an approver alternates"), PermissionError("role admin needed")],
    ids=repr,
)
def test_what_names_a_role_and_is_no_providers_goes_through(way, error):
    with pytest.raises(type(error)):
        ask(way, RetryingChatModel(ScriptedChatModel(["", error, "never"])))


class HostileError(Exception):
    """Takes no note, and can't be looked at."""

    @property
    def code(self):
        raise LookupError

    def __setattr__(self, name, value):
        raise LookupError


@dataclass(frozen=True)
class FrozenError(Exception):
    text: str = ""


@pytest.mark.parametrize("error", [HostileError(), FrozenError()], ids=repr)
def test_an_exception_that_takes_no_note_is_raised_without_one(way, error):
    with pytest.raises(type(error)):
        ask(way, RetryingChatModel(ScriptedChatModel(["", error, "never"])))


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (ChatMessage("Hi", role="User"), "Hi\n\nGo on."),
        (ChatMessage("Hi", role="human"), "Hi\n\nGo on."),
        (ChatMessage("Hi", role="model"), "Hi"),
        (HumanMessage.model_construct(content=None), [{"type": "text", "text": "Go on."}]),
    ],
    ids=str,
)
def test_turns_are_told_by_role_however_it_is_spelt(way, last, end):
    model = ScriptedChatModel(["", "Hello."])
    ask(way, RetryingChatModel(model, RetryPolicy(nudge="Go on.")), [last])
    assert [message.content for message in model.requests[1].messages] == [end]
