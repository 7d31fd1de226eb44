"""A script of chat completions in OpenAI's format that fails as real ones do.

What becomes of a request stands in its prompt: `call 17: nothing, cut, answer` has the first
request of call 17 answered with nothing, the second cut off, and the third and all others answered.
"""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from wire.replies import Ending, Reply, encode, failure
from wire.turns import Turn, body_of, calls


@dataclass(frozen=True)
class Fault:
    """What a request is answered with."""

    text: str | None = None
    """The content. `@` stands for call and request, as in `17.0`."""
    visible: bool = False
    """Whether a consumer can use it."""
    finish_reason: str | None = "stop"
    ending: Ending = Ending.DONE
    status: int = 200
    whole: str | None = None
    """A body of a request that is not streamed, in place of what the text makes."""
    streamed: str | None = None
    """The same of a streamed one."""
    last_event: str | None = None
    """What ends a stream in place of its proper end; what is not streamed breaks off."""
    drips: bool = False
    """Whether the body comes in small parts, slowly."""

    @property
    def torn(self) -> bool:
        return self.ending is not Ending.DONE or self.last_event is not None


_ANSWER = "Reply @ is seen."
_THOUGHTS = "<think>@ is not seen</think>\n"
_ERROR = '{"error": {"message": "failed", "code": "server_error"}}'
_GARBAGE = '{"choices": [{"delta'
_PAGE = "<html>Bad gateway</html>"

FAULTS = {
    # Answers.
    "answer": Fault(_ANSWER, visible=True),
    "answer-at-once": Fault("Reply-@.", visible=True),
    "answer-dripping": Fault(_ANSWER, visible=True, drips=True),
    "answer-after-thoughts": Fault(_THOUGHTS + _ANSWER, visible=True, drips=True),
    "answer-cut-short": Fault(_ANSWER, visible=True, finish_reason="length"),
    # Blanks.
    "null": Fault(),
    "empty": Fault(""),
    "white-space": Fault(" \n\u200b", drips=True),
    "thoughts": Fault(_THOUGHTS),
    "unclosed-thoughts": Fault("<think>@ is not seen", drips=True),
    "unfinished": Fault(finish_reason=None),
    "no-choice": Fault(whole='{"choices": []}', streamed="data: [DONE]\n\n"),
    "null-message": Fault(
        whole='{"choices": [{"index": 0, "message": null}]}',
        streamed='data: {"choices": [{"index": 0, "delta": null}]}\n\ndata: [DONE]\n\n',
    ),
    "nothing": Fault(whole="", streamed=""),
    "kept-alive": Fault(whole="\n\n\n", streamed=": kept alive\n\n: kept alive\n\n", drips=True),
    "missing-tool-call": Fault(finish_reason="tool_calls"),
    # Empty, and not to be asked for again.
    "truncated": Fault(_THOUGHTS, finish_reason="length"),
    "blocked": Fault(finish_reason="content_filter"),
    # Errors.
    "rate-limit": Fault(status=429),
    "server-error": Fault(status=500),
    "overloaded": Fault(status=503),
    "refused": Fault(status=400),
    "reset": Fault(ending=Ending.RESET),
    "cut": Fault(ending=Ending.CUT),
    "cut-in-thoughts": Fault(_THOUGHTS, ending=Ending.CUT),
    "cut-in-answer": Fault(_ANSWER, visible=True, ending=Ending.CUT, drips=True),
    "stall": Fault(ending=Ending.STALL),
    "stall-in-thoughts": Fault(_THOUGHTS, ending=Ending.STALL),
    "stall-in-answer": Fault(_ANSWER, visible=True, ending=Ending.STALL),
    "garbage": Fault(last_event=_GARBAGE),
    "garbage-in-answer": Fault(_ANSWER, visible=True, last_event=_GARBAGE),
    "page": Fault(whole=_PAGE, streamed=f"data: {_PAGE}\n\n"),
    "error-event": Fault(_THOUGHTS, whole=_ERROR, last_event=_ERROR),
    "error-event-in-answer": Fault(_ANSWER, visible=True, whole=_ERROR, last_event=_ERROR),
}


@dataclass(frozen=True)
class Served:
    """A request, and what it was answered with."""

    fault: str
    text: str
    """The content, as it was sent."""
    streamed: bool
    nudged: bool
    """Whether something had been added to the messages of the call."""
    calls_tool: bool
    """Whether the answer was a tool call, made in place of the text."""


class Faults:
    """The one step of a script: it answers requests as their prompts say."""

    def __init__(self) -> None:
        self.served: defaultdict[str, list[Served]] = defaultdict(list)
        """The requests of each call, in order; to be taken out by whoever has read them."""
        self._lock = threading.Lock()

    def __call__(self, asked: dict[str, Any]) -> Reply:
        body = asked["json"]
        messages = body["messages"]
        said = next(message["content"] for message in messages if message["role"] == "user")
        prompt, _, nudge = said.partition("\n\n")
        call, script = re.fullmatch(r"call (\S+): (.*)", prompt).groups()
        names = script.split(", ")
        streamed = body.get("stream", False)
        has_result = any(message["role"] == "tool" for message in messages)
        nudged = bool(nudge) or (has_result and messages[-1]["role"] == "user")
        with self._lock:
            served = self.served[call]
            name = names[min(len(served), len(names) - 1)]
            mark = f"{call}.{len(served)}"
            fault = FAULTS[name]
            text = None if fault.text is None else fault.text.replace("@", mark)
            calls_tool = fault.visible and "tools" in body and not has_result
            served.append(Served(name, text or "", streamed, nudged, calls_tool))
        if fault.status != 200:
            error = {"error": {"message": f"{name} {mark}", "type": name, "code": None}}
            return failure(error, fault.status)
        turn = calls("look_up", key=mark) if calls_tool else Turn(text, finish=fault.finish_reason)
        reply = _streamed(fault, turn) if streamed else _whole(fault, turn)
        return reply._replace(ending=fault.ending, drips=fault.drips)


def _whole(fault: Fault, turn: Turn) -> Reply:
    """A reply that is not streamed."""
    if fault.whole is not None:
        return encode("openai-chat", "invoke", fault.whole)
    text = json.dumps(body_of(turn, "openai-chat", "invoke"), ensure_ascii=False)
    return encode("openai-chat", "invoke", text[: len(text) // 2] if fault.torn else text)


def _streamed(fault: Fault, turn: Turn) -> Reply:
    """The same of a streamed one."""
    if fault.streamed is not None:
        return encode("openai-chat", "stream", fault.streamed)
    events = body_of(turn, "openai-chat", "stream")
    if fault.torn:
        *events, _finish, _done = events
    ends = [] if fault.last_event is None else [fault.last_event]
    return encode("openai-chat", "stream", [*events, *ends])
