"""Native protocol events of a model, held and judged as chunks are.

Where a model has `_stream_chat_model_events`, newer releases of langchain-core read it instead of
`_stream`. Event types: https://docs.langchain.com/langsmith/streaming and `langchain_protocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage

from langchain_retrying._call.replies import StreamedReply
from langchain_retrying._call.run_managers import Token
from langchain_retrying._judge.reply import ReplyJudge

Event = dict[str, Any]


@dataclass
class _Said:
    """What an event says, in the shape of a message."""

    content: list[Any] = field(default_factory=list)
    additional_kwargs: dict[str, Any] = field(default_factory=dict)
    response_metadata: dict[str, Any] = field(default_factory=dict)


class EventReply(StreamedReply):
    """A reply that comes in events. Reasoning is always held, and nothing is merged."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """As for `StreamedReply`."""
        super().__init__(*args, **kwargs)
        self._block_types: dict[Any, Any] = {}  # by the block's index

    def add(self, chunk: Event) -> bool:
        """As for chunks."""
        if self._judge is None:
            self._judge = ReplyJudge()
        said = self._said(chunk)
        if self._shows(chunk, said, None):
            return True
        self._held.append(chunk)
        return self._is_at_a_bound((said.content, said.additional_kwargs))

    def message(self) -> AIMessage | None:
        """What was held as one message, put together as LangChain does."""
        from langchain_core.language_models import chat_model_stream  # noqa: PLC0415 -- not in 0.3

        if not self.has_come:
            return None
        stream = chat_model_stream.ChatModelStream()
        for event in self._chunks():
            stream.dispatch(event)
        if not stream.done:
            stream.dispatch({"event": "message-finish"})
        return stream.output_message or AIMessage(content="")

    def as_it_came(self, account: dict[str, Any] | None) -> Iterable[Any]:
        """All that is held; the account goes where the message's metadata is told."""
        amend = self.amendment(account)
        held = super().as_it_came(None)
        if amend is None:
            return held
        return [item if isinstance(item, Token) else amend(item) for item in held]

    def _sum(self) -> Any:
        return self.message()

    def made_of(self, message: AIMessage) -> Iterable[Event]:
        """A whole message as events."""
        from langchain_core.language_models import _compat_bridge  # noqa: PLC0415 -- as above

        events: Iterable[Any] = _compat_bridge.message_to_events(message)
        return events

    def amendment(self, account: dict[str, Any] | None) -> Callable[[Event], Event] | None:
        """Put the account of retries on the event that ends the message."""
        if account is None:
            return None

        def amend(event: Event) -> Event:
            if event.get("event") != "message-finish":
                return event
            return {**event, "metadata": {**(event.get("metadata") or {}), "empty_retry": account}}

        return amend

    def _said(self, event: Event) -> _Said:
        kind = event.get("event")
        if kind == "message-start":
            return _Said()
        if kind in ("content-block-start", "content-block-finish"):
            block = event["content"]
            self._block_types[event.get("index")] = block.get("type")
            return _Said([block])
        if kind == "content-block-delta":
            return _Said([self._block_of_delta(event)])
        if kind == "message-finish":
            kwargs, metadata = event.get("additional_kwargs"), event.get("metadata")
            return _Said([], kwargs or {}, metadata or {})
        return _Said([event])  # not known, so it is let through

    def _block_of_delta(self, event: Event) -> dict[str, Any]:
        """A part of a block is what the block is, unless it says otherwise."""
        delta = event["delta"]
        if delta.get("type") in ("text-delta", "reasoning-delta"):
            return {**delta, "type": delta["type"].removesuffix("-delta")}
        fields = delta.get("fields", {}) if delta.get("type") == "block-delta" else delta
        return {**fields, "type": fields.get("type") or self._block_types.get(event.get("index"))}
