"""Native protocol events of a model, held and judged as chunks are.

Where a model has `_stream_chat_model_events`, newer releases of langchain-core read it instead of
`_stream`. Event types: https://docs.langchain.com/langsmith/streaming and `langchain_protocol`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage

from langchain_retrying._call.calls import StreamedCall
from langchain_retrying._call.held import Opening
from langchain_retrying._call.run_managers import Token

Event = dict[str, Any]


@dataclass
class _Said:
    """What an event says, in the shape of a chunk and its message."""

    content: list[Any] = field(default_factory=list)
    additional_kwargs: dict[str, Any] = field(default_factory=dict)
    response_metadata: dict[str, Any] = field(default_factory=dict)
    generation_info: None = None

    @property
    def message(self) -> _Said:
        return self


class EventOpening(Opening):
    """The first events of one attempt."""

    def __init__(self, max_held_bytes: int) -> None:
        super().__init__(max_held_bytes)
        self._block_types: dict[Any, Any] = {}  # by the block's index

    def add(self, chunk: Event) -> bool:
        """As for chunks; events are not merged."""
        return self._hold(chunk, self._said(chunk), merge=False)

    def release(self, account: dict[str, Any] | None) -> Iterator[Event | Token]:
        """All that was held; the account goes where the message's metadata is told."""
        for item in super().release(None):
            yield amended(item, account) if account and not isinstance(item, Token) else item

    def message(self) -> AIMessage:
        """What was held as one message, put together as LangChain does."""
        from langchain_core.language_models.chat_model_stream import (  # noqa: PLC0415 -- not in 0.3
            ChatModelStream,
        )

        stream = ChatModelStream()
        for event in (item for item in self._held if not isinstance(item, Token)):
            stream.dispatch(event)
        if not stream.done:
            stream.dispatch({"event": "message-finish"})
        return stream.output_message or AIMessage(content="")

    def items_of(self, message: AIMessage) -> Iterable[Event]:
        """A whole message as events."""
        from langchain_core.language_models._compat_bridge import (  # noqa: PLC0415 -- as above
            message_to_events,
        )

        events: Iterable[Any] = message_to_events(message)
        return events

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
            return _Said(
                additional_kwargs=event.get("additional_kwargs") or {},
                response_metadata=event.get("metadata") or {},
            )
        return _Said([event])  # not known, so it is let through

    def _block_of_delta(self, event: Event) -> dict[str, Any]:
        delta = event["delta"]
        kind = delta.get("type")
        if kind == "text-delta":
            return {"type": "text", "text": delta.get("text")}
        if kind == "reasoning-delta":
            return {"type": "reasoning", "reasoning": delta.get("reasoning")}
        fields = delta.get("fields", {}) if kind == "block-delta" else delta
        # A part of a block is what the block is, unless it says otherwise.
        return {**fields, "type": fields.get("type") or self._block_types.get(event.get("index"))}


class EventCall(StreamedCall):
    """A call whose replies come in events."""

    opening_class = EventOpening

    @property
    def amend(self) -> Callable[[Event], Event] | None:
        """Put the account of retries on the event that ends the message."""
        account = self.account_of_retries()
        return None if account is None else lambda event: amended(event, account)


def amended(event: Event, account: dict[str, Any]) -> Event:
    """The event, with the account if it is the one that carries the message's metadata."""
    if event.get("event") != "message-finish":
        return event
    return {**event, "metadata": {**(event.get("metadata") or {}), "empty_retry": account}}
