"""What one turn's calls of the model came to, learnt from LangChain's callbacks.

Bare and wrapped models are measured by the same events, whichever way they are called: a reply is
judged when its call ends, and earlier attempts are told by the reply itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import LLMResult

from langchain_retrying._judge.exceptions import verdict_on
from langchain_retrying._judge.reply import NOTHING, ReplyJudge, ReplyKind, Verdict, examine


@dataclass
class Call:
    """One call of the model."""

    began: float
    """Seconds of the monotonic clock."""
    requests: int = 1
    verdict: Verdict | None = None
    """On the reply; None if it raised, or was cut off."""
    answered: float | None = None
    """When the first usable output was there, on the same clock; None: never."""
    added_seconds: float = 0
    """From the start to the last attempt: rejected replies, and waits."""
    first_kind: ReplyKind | None = None
    """Of the first attempt's reply; None as for `verdict`."""
    input_tokens: int = 0
    """Of all attempts, as reported."""
    output_tokens: int = 0
    extra_input_tokens: int = 0
    """Those among them of attempts whose reply is not the one that was returned."""
    extra_output_tokens: int = 0
    reported_tokens: bool = True
    content: Any = None
    """Of the reply."""
    chunks: int = 0
    """That have been reported so far."""
    judge: ReplyJudge = field(default_factory=ReplyJudge)
    """Of those chunks."""

    @property
    def kind(self) -> ReplyKind | None:
        """Of the reply that was returned; None as for `verdict`."""
        return self.verdict.kind if self.verdict else None

    def take_nothing(self) -> None:
        """Note that no reply came."""
        self.verdict, self.first_kind = NOTHING, NOTHING.kind


class Recorder(BaseCallbackHandler):
    """Records the calls of one turn."""

    raise_error = True  # a fault here must not look like a model's
    run_inline = True  # in the order of events, and without threads

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.calls: list[Call] = []
        self.error: Exception | None = None
        """What ended the turn, if its calls did not end well."""
        self._running: dict[UUID, Call] = {}

    @property
    def kind(self) -> ReplyKind | None:
        """Of the last reply, which is what the user gets; None if the turn raised."""
        return self.calls[-1].kind if self.calls and self.error is None else None

    @property
    def ended(self) -> bool:
        """Whether it came to something: it was not cut off."""
        return self.kind is not None or self.error is not None

    @property
    def seconds(self) -> float | None:
        """From the turn's start until its answer began; None if none came."""
        if self.kind is not ReplyKind.ANSWER:
            return None
        answered = self.calls[-1].answered
        return None if answered is None else answered - self.began

    def on_chat_model_start(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        """Start a call."""
        call = Call(time.perf_counter())
        self.calls.append(call)
        self._running[run_id] = call

    def on_retry(self, retry_state: Any, *, run_id: UUID, **kwargs: Any) -> Any:
        """Another attempt follows, after a wait."""
        call = self._running[run_id]
        call.requests += 1
        call.added_seconds = time.perf_counter() - call.began + retry_state.next_action.sleep

    def on_llm_new_token(self, token: Any, *, run_id: UUID, chunk: Any = None, **_: Any) -> None:
        """Note when the first usable one comes."""
        call = self._running[run_id]
        call.chunks += 1
        if call.answered is None and chunk is not None and call.judge.add(chunk.message):
            call.answered = time.perf_counter()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Judge the reply."""
        call = self._running.pop(run_id)
        if not response.generations[0]:  # LangChain raises after this event
            call.take_nothing()
            return
        generation: Any = response.generations[0][0]
        message = generation.message
        call.content = message.content
        call.verdict = examine(message, generation.generation_info)
        if call.answered is None and call.verdict.is_answer:
            call.answered = time.perf_counter()
        retries = message.response_metadata.get("empty_retry")
        usage = getattr(message, "usage_metadata", None)
        call.reported_tokens = usage is not None
        _account(call, retries, usage or {})

    def raised(self, error: Exception, model: BaseChatModel) -> None:
        """Take what the turn raised, which may be a blank in disguise: a stream without chunks."""
        call = self.calls[-1] if self.calls else None
        if (
            call
            and not call.verdict
            and verdict_on(error, model, without_chunks=not call.chunks) is not None
        ):
            call.take_nothing()
        elif self.kind in (None, ReplyKind.ANSWER):  # after a blank it is what became of that
            self.error = error


def _account(call: Call, retries: Mapping[str, Any] | None, usage: Mapping[str, Any]) -> None:
    """Note what a reply tells of its own tokens and of the attempts before it."""
    assert call.verdict is not None  # there is a reply
    call.first_kind = call.verdict.kind
    call.input_tokens = usage.get("input_tokens", 0)
    call.output_tokens = usage.get("output_tokens", 0)
    if retries is None:
        return
    call.requests = retries["attempts"]
    earlier = retries["rejected"] if call.verdict.is_answer else retries["rejected"][:-1]
    if earlier:
        call.first_kind = ReplyKind(earlier[0]["kind"])
    call.extra_input_tokens = sum(attempt["rejected_input_tokens"] for attempt in earlier)
    call.extra_output_tokens = sum(attempt["rejected_output_tokens"] for attempt in earlier)
    call.input_tokens += call.extra_input_tokens
    call.output_tokens += call.extra_output_tokens
