"""Saying nothing after a tool that has said or done it all is a proper end, not a fault."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, FunctionMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from tenacity import retry_if_exception_type

from conftest import WAYS, ask
from langchain_retrying import EmptyCompletionError, RetryingChatModel, RetryPolicy
from langchain_retrying._policy.proper_end import follows_terminal_tool
from langchain_retrying.testing import ScriptedChatModel
from wire.agents import executor_of


def call(name, number=1):
    return {"name": name, "args": {"text": "Hi"}, "id": f"call-{number}", "type": "tool_call"}


def called(*names):
    return AIMessage("", tool_calls=[call(name, number) for number, name in enumerate(names)])


def result(name=None, number=0, **fields):
    return ToolMessage("Sent.", tool_call_id=f"call-{number}", name=name, **fields)


SENT = [HumanMessage("Hi"), called("send_reply"), result("send_reply")]


@pytest.mark.parametrize(
    ("messages", "follows"),
    [
        (SENT, True),
        ([called("send_reply"), result()], True),  # told by the call, where it has no name
        ([called("look_up"), result("look_up")], False),
        ([called("look_up"), result()], False),
        ([called("send_reply", "look_up"), result(None, 0), result(None, 1)], True),
        ([called("look_up", "send_reply"), result("look_up", 0), result("send_reply", 1)], True),
        ([*SENT, called("look_up"), result("look_up")], False),
        ([*SENT, HumanMessage("And now?")], False),
        ([*SENT, AIMessage("Done.")], False),
        ([called("send_reply"), result("send_reply", status="error")], False),
        ([called("send_reply"), result(status="error")], False),
        ([result()], False),
        ([result("send_reply")], True),
        ([FunctionMessage("Sent.", name="send_reply")], True),
        ([FunctionMessage("42", name="look_up")], False),
        ([], False),
    ],
)
def test_what_follows_a_terminal_tool(messages, follows):
    assert follows_terminal_tool(messages, ("finalize", "send_reply")) is follows


POLICY = RetryPolicy(terminal_tools=["send_reply"], on_exhausted="raise")


def test_a_blank_after_it_is_accepted_as_it_is(way, caplog):
    blank = AIMessage("", response_metadata={"finish_reason": "stop"})
    bare = ask(way, ScriptedChatModel([blank]), SENT)
    model = ScriptedChatModel([blank, "never"])
    reply = ask(way, RetryingChatModel(model, POLICY), SENT)
    assert reply.model_dump(exclude={"id"}) == bare.model_dump(exclude={"id"})
    assert len(model.requests) == 1
    assert not caplog.records


def test_so_is_a_blank_that_did_not_come_at_all(way):
    assert ask(way, RetryingChatModel(ScriptedChatModel([[]]), POLICY), SENT).content == ""


def test_other_kinds_of_empty_replies_are_not(way):
    cut = AIMessage("", response_metadata={"finish_reason": "length"})
    with pytest.raises(EmptyCompletionError):
        ask(way, RetryingChatModel(ScriptedChatModel([cut]), POLICY), SENT)


def test_nor_is_a_blank_elsewhere(way):
    model = ScriptedChatModel(["", "Hello."])
    assert ask(way, RetryingChatModel(model, POLICY)).content == "Hello."


@tool
def send_reply(text: str) -> str:
    """Send a reply."""
    return "Sent."


class SendsAgain(ScriptedChatModel):
    """Rightly silent after its tool; asked again it repeats the call, as many models do."""

    def __init__(self, **kwargs):
        super().__init__(self.reply, **kwargs)

    @staticmethod
    def reply(messages):
        return "" if messages[-1].type == "tool" else called("send_reply")


def turns_of(model):
    return [request.messages[-1].type for request in model.requests]


@pytest.mark.parametrize("stream_runnable", [True, False])
async def test_an_agent_executor_ends_in_one_call_after_the_tool(stream_runnable):
    model = SendsAgain()
    executor = executor_of(RetryingChatModel(model, POLICY), [send_reply], stream_runnable)
    assert executor.invoke({"input": "Hi"})["output"] == ""
    assert (await executor.ainvoke({"input": "Hi"}))["output"] == ""
    assert turns_of(model) == ["human", "tool"] * 2


def test_without_the_policy_the_tool_is_called_again():
    """What emptiness alone as the trigger does: the nudge makes the model repeat its tool call."""
    model = SendsAgain()
    executor = executor_of(RetryingChatModel(model), [send_reply], stream_runnable=False)
    executor.max_iterations = 3
    executor.return_intermediate_steps = True
    steps = executor.invoke({"input": "Hi"})["intermediate_steps"]
    assert [action.tool for action, _ in steps] == ["send_reply"] * 3  # the bound


async def test_so_does_create_agent():
    agents = pytest.importorskip("langchain.agents")
    if not hasattr(agents, "create_agent"):
        pytest.skip("create_agent came with langchain 1.0")
    model = SendsAgain()
    agent = agents.create_agent(RetryingChatModel(model, POLICY), tools=[send_reply])
    for state in (
        agent.invoke({"messages": [("human", "Hi")]}),
        await agent.ainvoke({"messages": [("human", "Hi")]}),
        list(agent.stream({"messages": [("human", "Hi")]}, stream_mode="values"))[-1],
    ):
        assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert turns_of(model) == ["human", "tool"] * 3


def test_a_predicate_accepts_any_kind(way):
    seen = []

    def accept(messages, reply):
        seen.append((list(messages), reply.response_metadata.get("finish_reason")))
        return reply.response_metadata.get("finish_reason") == "length"

    cut = AIMessage("", response_metadata={"finish_reason": "length"})
    policy = RetryPolicy(accept=accept, on_exhausted="raise", wait=None)
    reply = ask(way, RetryingChatModel(ScriptedChatModel(["", cut]), policy), SENT)
    assert reply.response_metadata["finish_reason"] == "length"
    account = reply.response_metadata["empty_retry"]
    assert (account["attempts"], len(account["rejected"])) == (2, 1)
    assert seen == [(SENT, None), (SENT, "length")]


def test_answers_are_not_asked_about(way):
    def accept(messages, reply):
        raise AssertionError

    model = RetryingChatModel(ScriptedChatModel(["Hello."]), RetryPolicy(accept=accept))
    assert ask(way, model).content == "Hello."


@pytest.mark.parametrize("way_", WAYS)
def test_what_the_predicate_raises_goes_through(way_):
    def accept(messages, reply):
        raise LookupError

    model = RetryingChatModel(ScriptedChatModel([""]), RetryPolicy(accept=accept))
    with pytest.raises(LookupError):
        ask(way_, model)


def test_nothing_at_all_that_is_accepted_has_the_account_of_what_came_before(way):
    policy = RetryPolicy(
        retry=retry_if_exception_type(TimeoutError), accept=lambda messages, reply: True, wait=None
    )
    reply = ask(way, RetryingChatModel(ScriptedChatModel([TimeoutError(), []]), policy))
    assert reply.content == ""
    assert reply.response_metadata["empty_retry"]["attempts"] == 2
