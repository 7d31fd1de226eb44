"""What type checkers make of the public names; checked by mypy and pyright, and never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from tenacity import retry_if_exception_type, stop_after_delay, wait_fixed
from typing_extensions import assert_type

from langchain_retrying import (
    EmptyCompletionError,
    FallbackModel,
    Nudge,
    RaiseOutputBudget,
    RejectedAttempt,
    Remedy,
    ReplyKind,
    Request,
    RetryBudget,
    RetryingChatModel,
    RetryPolicy,
    WithParams,
    is_empty_ai_message,
    judge,
    repeat,
    stop_after_rejected_tokens,
)
from langchain_retrying.testing import RecordingSleep, ScriptedChatModel

# A wrapper is a chat model, with what those return.
model = RetryingChatModel(ChatOpenAI(model="gpt-5-mini"), RetryPolicy(max_retries=1))
assert_type(model, RetryingChatModel)
as_chat_model: BaseChatModel = model
assert_type(model.invoke("Hi"), AIMessage)
assert_type(model.stream("Hi"), Iterator[AIMessageChunk])
assert_type(model.astream("Hi"), AsyncIterator[AIMessageChunk])
assert_type(model.bind_tools([len]), Runnable[LanguageModelInput, AIMessage])
assert_type(model.inner_model, BaseChatModel)
assert_type(model.retry_policy, RetryPolicy)

# The inner model's attributes are there, of types that only a look at its class can tell.
model.model_name.upper()
if isinstance(model, ChatOpenAI):
    assert_type(model.model_name, str)


# A policy takes tenacity's strategies, this package's, and plain callables.
def accept(messages: Sequence[BaseMessage], reply: AIMessage) -> bool:
    return not messages and is_empty_ai_message(reply)


def say_so(error: EmptyCompletionError) -> AIMessage:
    assert_type(error.kind, ReplyKind)
    assert_type(error.rejected, tuple[RejectedAttempt, ...])
    return AIMessage(str(error))


def own_remedy(request: Request, error: EmptyCompletionError) -> Request | None:
    return request if error.attempts == 1 else None


remedy: Remedy = own_remedy
policy = RetryPolicy(
    max_retries=3,
    wait=wait_fixed(1),
    stop=stop_after_delay(9) | stop_after_rejected_tokens(9) | RetryBudget(),
    retry=retry_if_exception_type(TimeoutError),
    remedies={
        ReplyKind.BLANK: [repeat, Nudge("Go on."), (Nudge(), WithParams(temperature=1.0))],
        ReplyKind.TRUNCATED: [RaiseOutputBudget(factor=1.5, ceiling=9)],
        ReplyKind.BLOCKED: [FallbackModel(model), FallbackModel(model.bind(a=1)), own_remedy],
        ReplyKind.MALFORMED: None,
    },
    terminal_tools=["send"],
    accept=accept,
    require_tool_call=True,
    max_held_seconds=9,
    on_exhausted=say_so,
)
RetryPolicy(nudge=lambda messages, error: f"{len(messages)} {error.kind.value}")
assert_type(judge(AIMessage("")), ReplyKind)

# What users write in their tests.
script = ScriptedChatModel(["", AIMessage("a"), ["a", "b"], ValueError(), lambda messages: "a"])
with RecordingSleep() as slept:
    assert_type(slept.seconds, list[float])
sent: list[BaseMessage] = script.requests[0].messages

# And what is wrong is told.
RetryingChatModel("openai:gpt")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
RetryPolicy(max_retries="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
RetryPolicy(nudge=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
