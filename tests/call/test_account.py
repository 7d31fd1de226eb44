"""What is told of a call: tokens of each attempt, and nothing of its content, anywhere."""

from __future__ import annotations

import logging
import pickle
import traceback

import pytest
from langchain_core import callbacks
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs

from conftest import ask
from langchain_retrying import (
    EmptyCompletionError,
    FallbackModel,
    Nudge,
    ReplyKind,
    RetryingChatModel,
    RetryPolicy,
    WithParams,
    repeat,
)
from langchain_retrying.testing import RecordingSleep, ScriptedChatModel
from wire.clients import build
from wire.replies import encode


def usage(given: int, made: int) -> dict[str, int]:
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}


SCRIPT = [
    [
        AIMessageChunk("", usage_metadata=usage(10, 0)),
        AIMessageChunk("", usage_metadata=usage(0, 4)),
    ],
    AIMessage(" ", usage_metadata=usage(20, 1)),
    AIMessage("Hello.", usage_metadata=usage(30, 2), response_metadata={"model_name": "a"}),
]


def test_the_accepted_message_has_its_own_usage_and_that_of_the_rejected_beside_it(way):
    reply = ask(way, RetryingChatModel(ScriptedChatModel(SCRIPT), RetryPolicy(wait=None)))
    assert reply.usage_metadata == usage(30, 2)
    account = reply.response_metadata["empty_retry"]
    assert [
        (one["rejected_input_tokens"], one["rejected_output_tokens"]) for one in account["rejected"]
    ] == [
        (10, 4),
        (20, 1),
    ]
    assert (account["rejected_input_tokens"], account["rejected_output_tokens"]) == (30, 5)


def test_handlers_count_tokens_as_with_the_bare_model(way):
    if not hasattr(callbacks, "UsageMetadataCallbackHandler"):
        pytest.skip("this release of LangChain has no UsageMetadataCallbackHandler")
    counted = []
    for model in (
        ScriptedChatModel(SCRIPT[-1:]),
        RetryingChatModel(ScriptedChatModel(SCRIPT), RetryPolicy(wait=None)),
    ):
        handler = callbacks.UsageMetadataCallbackHandler()
        ask(way, model, config={"callbacks": [handler]})
        counted.append(handler.usage_metadata)
    assert counted[0] == counted[1]
    assert counted[0]["a"]["output_tokens"] == 2


SECRET = "s3cr3t"  # noqa: S105 -- planted
KEY = "sk-k3y"
BODY = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "model-a",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": f"<think>{SECRET}</think>",
                "reasoning_content": SECRET,
            },
            "finish_reason": "stop",
            "native_reason": SECRET,
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    "secret": SECRET,
}
POLICIES = {
    "raise": RetryPolicy(max_retries=1, wait=None, on_exhausted="raise"),
    "return": RetryPolicy(max_retries=1, wait=None),
    "stand-in": RetryPolicy(max_retries=1, wait=None, on_exhausted="So sorry."),
    "remedies": RetryPolicy(
        max_retries=3,
        wait=None,
        on_exhausted="raise",
        remedies={ReplyKind.BLANK: [repeat, (Nudge(SECRET), WithParams(user=SECRET))]},
    ),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("way_", ["invoke", "ainvoke"])
def test_secrets_planted_everywhere_are_told_nowhere(server, name, way_, caplog):
    """In prompt, system prompt, key, reasoning, reply, raw body, nudge and parameters."""
    server.play(encode("openai-chat", "invoke", BODY))
    inner = build({"class": "ChatOpenAI", "kwargs": {"api_key": KEY}}, server.url)
    model = RetryingChatModel(inner, POLICIES[name])
    prompt = [("system", SECRET), ("human", SECRET)]
    told = []
    with caplog.at_level(logging.DEBUG, "langchain_retrying"), collect_runs() as runs:
        try:
            reply = ask(way_, model, prompt, user=SECRET)
        except EmptyCompletionError as error:
            again = pickle.loads(pickle.dumps(error))
            told += [str(error), repr(error), str(error.rejected), str(again)]
            told += traceback.format_exception_only(type(error), error)
        else:
            told.append(str(reply.response_metadata["empty_retry"]))
    told += [record.getMessage() for record in caplog.records if "retrying" in record.name]
    told += [str(event) for run in runs.traced_runs for event in run.events]
    told.append(repr(model))
    assert len(server.requests) == POLICIES[name].max_retries + 1
    assert told
    if name == "remedies":  # the user's own words are shown to the user
        told.pop()
    assert not [text for text in told if SECRET in text or KEY in text]


def test_with_fallbacks_takes_over_in_a_chain(way):
    blank = RetryingChatModel(
        ScriptedChatModel(lambda messages: ""), RetryPolicy(wait=None, on_exhausted="raise")
    )
    other = ScriptedChatModel(["Hello."])
    chain = RunnableLambda(lambda text: [HumanMessage(text)]) | blank.with_fallbacks(
        [other], exceptions_to_handle=(EmptyCompletionError,)
    )
    assert ask(way, chain, "Hi").content == "Hello."


def test_model_fallback_middleware_takes_over():
    middleware = pytest.importorskip("langchain.agents.middleware")
    create_agent = pytest.importorskip("langchain.agents").create_agent
    blank = ScriptedChatModel(lambda messages: "")
    model = RetryingChatModel(blank, RetryPolicy(wait=None, on_exhausted="raise"))
    other = ScriptedChatModel(["Hello."])
    agent = create_agent(model, middleware=[middleware.ModelFallbackMiddleware(other)])
    state = agent.invoke({"messages": [("human", "Hi")]})
    assert state["messages"][-1].content == "Hello."
    assert (len(blank.requests), len(other.requests)) == (3, 1)


def test_an_exception_in_a_retry_tells_what_was_rejected_before(way):
    model = RetryingChatModel(ScriptedChatModel(["", LookupError("a")]), RetryPolicy(wait=None))
    with pytest.raises(LookupError) as caught:
        ask(way, model)
    (note,) = caught.value.__notes__
    assert note == (
        "Raised in attempt 2 of a call to ScriptedChatModel; "
        "empty replies rejected before: 1 (blank)."
    )


def test_so_does_one_after_the_commit(streaming_way):
    script = [[""], ["Hello.", LookupError("a")]]
    model = RetryingChatModel(ScriptedChatModel(script), RetryPolicy(wait=None))
    with pytest.raises(LookupError) as caught:
        ask(streaming_way, model)
    assert "Raised in attempt 2" in caught.value.__notes__[0]
    first = RetryingChatModel(ScriptedChatModel([["Hello.", LookupError("b")]]))
    with pytest.raises(LookupError) as caught:
        ask(streaming_way, first)
    assert not getattr(caught.value, "__notes__", ())


def test_an_exception_of_a_fallback_names_it():
    class Other(ScriptedChatModel):
        pass

    remedies = {ReplyKind.BLANK: [FallbackModel(Other([LookupError("a")]))]}
    model = RetryingChatModel(ScriptedChatModel([""]), RetryPolicy(remedies=remedies))
    with pytest.raises(LookupError) as caught:
        model.invoke("Hi")
    assert "attempt 2 of a call to Other;" in caught.value.__notes__[0]


def test_a_fallback_that_is_wrapped_is_accounted_for_as_one_that_is_not(way):
    blank = AIMessage("", usage_metadata=usage(10, 0))

    def account(wrap):
        remedies = {ReplyKind.BLANK: [FallbackModel(wrap(ScriptedChatModel([blank, "Hello."])))]}
        policy = RetryPolicy(wait=None, remedies=remedies)
        with RecordingSleep():  # so that it took no time
            reply = ask(way, RetryingChatModel(ScriptedChatModel([blank]), policy))
        return reply.response_metadata["empty_retry"]

    bare = account(lambda model: model)
    assert (bare["attempts"], len(bare["rejected"]), bare["rejected_input_tokens"]) == (3, 2, 20)
    assert bare["model"] == "ScriptedChatModel"
    assert account(RetryingChatModel) == bare


def test_the_account_names_the_model_only_where_it_is_another(way):
    reply = ask(way, RetryingChatModel(ScriptedChatModel(["", "Hello."])))
    assert "model" not in reply.response_metadata["empty_retry"]


@pytest.mark.parametrize("odd", [{"input_tokens": None, "output_tokens": "2"}, ["a"]], ids=str)
def test_usage_of_an_odd_shape_counts_nothing(odd):
    class Odd(ScriptedChatModel):
        def _generate(self, *args, **kwargs):
            result = super()._generate(*args, **kwargs)
            result.generations[0].message.usage_metadata = odd
            return result

    reply = RetryingChatModel(Odd(["", ""]), RetryPolicy(max_retries=1)).invoke("Hi")
    assert reply.response_metadata["empty_retry"]["rejected_input_tokens"] == 0
