"""A reply saved as JSON, of LangChain's or of a provider's, in the shape that the judge takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]


@dataclass
class SavedReply:
    """What the judge looks at."""

    content: Any = None
    additional_kwargs: Json = field(default_factory=dict)
    response_metadata: Json = field(default_factory=dict)
    tool_calls: Any = None
    invalid_tool_calls: Any = None


def saved_reply(reply: Any) -> SavedReply:
    """Find the reply in parsed JSON.

    Args:
        reply: A LangChain message (from `message.model_dump()`, `message_to_dict` or `dumpd`), or
            the body of a reply of OpenAI (chat completions and compatible, Responses), Anthropic,
            Gemini, Ollama, Bedrock Converse or Cohere. Of several candidates the first counts.

    Raises:
        ValueError: It is none of these.

    """
    if isinstance(reply, Mapping):
        for keys, read in _READERS:
            if keys <= reply.keys():
                return read(reply)
    raise ValueError(
        "neither a LangChain message nor a reply of OpenAI, Anthropic, Gemini, Ollama, Bedrock "
        "or Cohere"
    )


def _langchain_message(message: Json) -> SavedReply:
    return SavedReply(
        message.get("content"),
        message.get("additional_kwargs") or {},
        message.get("response_metadata") or {},
        message.get("tool_calls"),
        message.get("invalid_tool_calls"),
    )


def _openai_chat(reply: Json) -> SavedReply:
    choice = _first(reply["choices"])
    message = dict(choice.get("message") or choice.get("delta") or {})
    content, _ = message.pop("content", None), message.pop("role", None)
    # A call whose function is null calls nothing.
    message["tool_calls"] = [
        call
        for call in message.get("tool_calls") or []
        if any(isinstance(value, Mapping) for value in call.values())
    ]
    return SavedReply(content, message, {"finish_reason": choice.get("finish_reason")})


def _openai_responses(reply: Json) -> SavedReply:
    content: list[Any] = []
    for item in reply["output"] or []:
        content += (item.get("content") or []) if item.get("type") == "message" else [item]
    return SavedReply(content, response_metadata=reply)


def _anthropic(reply: Json) -> SavedReply:
    return SavedReply(reply["content"], response_metadata=reply)


def _gemini(reply: Json) -> SavedReply:
    candidate = _first(reply.get("candidates"))
    feedback = reply.get("promptFeedback") or {}
    parts = (candidate.get("content") or {}).get("parts") or []
    return SavedReply(
        [{"type": "thinking"} if part.get("thought") else _gemini_part(part) for part in parts],
        response_metadata={
            "finish_reason": candidate.get("finishReason"),
            "prompt_feedback": {"block_reason": feedback.get("blockReason")},
        },
    )


def _gemini_part(part: Json) -> Json:
    return {key: value for key, value in part.items() if key != "thoughtSignature"}


def _bedrock(reply: Json) -> SavedReply:
    content = [
        block if "text" in block or "reasoningContent" not in block else {"type": "reasoning"}
        for block in (reply["output"].get("message") or {}).get("content") or []
    ]
    return SavedReply(content, response_metadata=reply)


def _with_message(reply: Json) -> SavedReply:
    """Ollama's and Cohere's."""
    message = dict(reply["message"])
    content, _ = message.pop("content", None), message.pop("role", None)
    return SavedReply(content, message, reply)


def _first(candidates: Any) -> Json:
    candidate: Json = (candidates[0] if candidates else None) or {}
    return candidate


# The first whose keys are all there; those of more than one provider come last.
_READERS: tuple[tuple[frozenset[str], Callable[[Json], SavedReply]], ...] = (
    (frozenset({"lc", "kwargs"}), lambda message: _langchain_message(message["kwargs"])),
    (frozenset({"type", "data"}), lambda message: _langchain_message(message["data"])),
    (frozenset({"content", "response_metadata"}), _langchain_message),
    (frozenset({"content", "additional_kwargs"}), _langchain_message),
    (frozenset({"choices"}), _openai_chat),
    (frozenset({"output", "stopReason"}), _bedrock),
    (frozenset({"object", "output"}), _openai_responses),
    (frozenset({"content", "stop_reason"}), _anthropic),
    (frozenset({"candidates"}), _gemini),
    (frozenset({"promptFeedback"}), _gemini),
    (frozenset({"usageMetadata"}), _gemini),
    (frozenset({"message"}), _with_message),
)
