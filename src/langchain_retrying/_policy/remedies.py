"""What the next attempt changes. Pure: a remedy takes a request and returns the next one.

Remedies form ladders, one for each kind of empty reply: retry k uses rung k, the last one repeats.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage

from langchain_retrying._errors import EmptyCompletionError
from langchain_retrying._judge.kinds import ReplyKind
from langchain_retrying._judge.reply import is_empty_ai_message
from langchain_retrying._policy.checks import check_callable, check_kind, returned
from langchain_retrying._policy.tool_choice import tools_of
from langchain_retrying._policy.wrappers import unwrapped


@dataclass(frozen=True)
class Request:
    """What one attempt sends, and to which model."""

    messages: Sequence[BaseMessage]
    kwargs: Mapping[str, Any]
    """Call arguments but `stop` and `run_manager`: `tools`, `tool_choice`, `temperature` ..."""
    model: BaseChatModel
    """The inner model, or the one that stands in for it."""
    last: "Request | None" = None
    """Of the original request: what was sent for the last reply."""
    kept: Callable[["Request"], "Request"] | None = None
    """What later attempts keep of this one, as a raised output budget: `(original request) ->
    original request from then on`. None: nothing."""
    is_nudged: bool = False
    """Whether `Nudge` has added something."""
    nudge_refused: bool = False
    """Of the original request: whether the provider has refused a nudge; `Nudge` adds none then."""


Remedy = Callable[[Request, EmptyCompletionError], Request | None]
"""`(original request, account of what was rejected so far) -> request of the next attempt`.

The request and what it holds are not to be changed: `dataclasses.replace` makes another. None says
that there is nothing to try, and ends the call as if no retry were left.
"""

Rung = Remedy | Sequence[Remedy]
"""A remedy, or several that are applied one after the other."""

NudgeCallable = Callable[[Sequence[BaseMessage], EmptyCompletionError], str | BaseMessage | None]
NudgeText = str | BaseMessage | NudgeCallable
"""A nudge: its text (sent as a `HumanMessage`), a message, or a callable `(messages, error)` that
returns either, or None to repeat silently."""


def repeat(request: Request, error: EmptyCompletionError) -> Request:
    """The remedy that changes nothing."""
    return request


@dataclass(frozen=True)
class Nudge:
    """The remedy that says, at the end of the messages, what is wanted.

    Many chat templates refuse two user's turns in a row, so a text becomes part of a copy of the
    last message if that is a user's; after a tool's it is a user's turn of its own (for
    `ChatMistralAI`, whose API rejects that, it is added to the tool's result). Where the last
    message is the assistant's, the reply continues it: nothing is added, the retry is silent. If
    the provider refuses the nudged request, the attempt is made again without the nudge.

    The wording asks for the answer to the request, allows a sentence, and does not speak of what
    came. Measured on SmolLM2-135M-Instruct, on 28 conversations with 3 seeds each (`make
    bench-real`): 29 of 84 calls blank bare, 11 after silent retries, none nudged. 3 of the 29
    nudged replies had an apology in them, none spoke of an empty reply. What it does for larger
    models was not measured, nor that a required tool call is made.

    Args:
        nudge: What to say; None: a wording that fits the kind of emptiness, names tool calls only
            if tools are bound, and lets a model that has finished say so.

    Raises:
        TypeError: `nudge` is no text, message or callable, or it is async.
        ValueError: It is empty.

    """

    nudge: NudgeText | None = None

    def __post_init__(self) -> None:
        content: Any = getattr(self.nudge, "content", self.nudge)
        if not isinstance(self.nudge, (str, BaseMessage, type(None))):
            check_callable("nudge", self.nudge, "a text, a message or a callable (messages, error)")
        elif content is not None and is_empty_ai_message(AIMessage(content)):
            raise ValueError("nudge must not be empty; write nudge=None, or repeat in a ladder")

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request:
        """The request with the nudge at the end; the messages given are not changed."""
        role = _last_role(request)
        if request.nudge_refused or role.startswith(_ASSISTANT):
            return request
        nudge: Any = _wording(request, error) if self.nudge is None else self.nudge
        if callable(nudge):
            nudge = returned("nudge", nudge(request.messages, error))
        if nudge is None or nudge == "":
            return request
        check_kind("nudge must return a text, a message or None", nudge, str, BaseMessage)
        messages = list(request.messages)
        if isinstance(nudge, BaseMessage):
            messages.append(nudge.model_copy(deep=True))  # the inner model may write into it
        elif role.startswith(_USER) or (role == "tool" and "mistral" in request.model._llm_type):
            messages[-1] = _with_text(messages[-1], nudge)
        else:
            messages.append(HumanMessage(content=nudge))
        return replace(request, messages=messages, is_nudged=True)


DEFAULT_NUDGE = Nudge()
"""The wording that fits what happened."""


def remedy_of(nudge: NudgeText | Nudge | None) -> Remedy:
    """The remedy that a policy's nudge stands for."""
    if nudge is None:
        return repeat
    return nudge if isinstance(nudge, Nudge) else Nudge(nudge)


@dataclass(frozen=True, init=False)
class WithParams:
    """The remedy that changes call arguments, as `model.bind(**params)` would.

    Args:
        **params: What the inner model's integration takes at a call, at least one, such as
            `temperature=1.0`, `reasoning_effort="low"` or `thinking={"type": "disabled"}`.

    Raises:
        TypeError: No argument is given, or `run_manager`, which is no argument of a call.

    """

    params: Mapping[str, Any]

    def __init__(self, **params: Any) -> None:
        if not params or "run_manager" in params:
            raise TypeError("WithParams needs call arguments, such as WithParams(temperature=1.0)")
        object.__setattr__(self, "params", params)

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request:
        """The request with these arguments in place of its own of the same name."""
        return replace(request, kwargs={**request.kwargs, **self.params})

    def __repr__(self) -> str:
        shown = (f"{key}=..." for key in self.params)  # headers, for one, may hold secrets
        return f"WithParams({', '.join(shown)})"


def next_step(ladder: Sequence[Rung], step: int, error: EmptyCompletionError) -> int:
    """The step of a ladder that the next attempt takes; beyond its top the last rung repeats.

    Args:
        ladder: For the kind of the last reply, at least one rung.
        step: That the last attempt has taken, on the ladder of its kind; -1: none.
        error: The account of what was rejected so far.

    """
    top = len(ladder) - 1
    following = step + 1
    if error.is_repeated_blank and step >= 0:  # so the rung taken has changed nothing
        while following < top and ladder[following] == ladder[min(step, top)]:
            following += 1
    return following


def next_request(rung: Rung, request: Request, error: EmptyCompletionError) -> Request | None:
    """What an attempt on a rung sends; None: there is nothing to try.

    Args:
        rung: Of the ladder.
        request: The original one.
        error: The account of what was rejected so far.

    """
    changed = None
    for remedy in (rung,) if callable(rung) else rung:
        result = returned("a remedy", remedy(changed or request, error))
        if result is None:
            continue  # of several, one that has nothing to try is left out
        check_kind("a remedy must return a Request or None", result, Request)
        model = unwrapped(result.model)  # it would retry within each retry
        must = "a remedy's model must be a chat model, and what is bound to one be among kwargs"
        check_kind(must, model, BaseChatModel)
        changed = result if model is result.model else replace(result, model=model)
    return changed


_ASSISTANT = ("ai", "assistant", "model")
_USER = ("human", "user")
"""How roles begin, and the types of messages and of their chunks."""


def _last_role(request: Request) -> str:
    """Whose turn the last message is, in lower case."""
    last = request.messages[-1] if request.messages else None
    return (last.role if isinstance(last, ChatMessage) else last.type if last else "").lower()


def _with_text(message: BaseMessage, text: str) -> BaseMessage:
    content: Any = message.content
    if isinstance(content, str):
        content = f"{content}\n\n{text}"
    else:
        content = [*(content or ()), {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})


def _wording(request: Request, error: EmptyCompletionError) -> str:
    """What is wanted, without a word on what came: models answer that with apologies."""
    last, has_tools = error.rejected[-1], bool(tools_of(request.kwargs))
    # No retry sends what the one before has sent.
    call, tell, make = ("Call", "Tell", "Make")
    if error.attempts % 2 == 0:
        call, tell, make = ("Please call", "Please tell", "Please make")
    if error.expected_tools:
        wanted = f"{call} {' or '.join(error.expected_tools)} now, with what you know."
    else:
        wanted = f"{tell} me the answer to my request, in a sentence if that is enough"
        if has_tools:
            wanted += ", or make a tool call that is still needed; do not repeat one you have made"
        wanted += "."
    if last.kind is ReplyKind.TRUNCATED:
        return f"Be brief. {wanted}"
    if last.kind is ReplyKind.MALFORMED:
        if last.saw_leaked_call:
            return f"{make} the tool call again, as a tool call and not as text."
        if last.saw_invalid_call and not error.expected_tools:
            return f"{make} the tool call again, with its arguments in valid JSON."
        invalid = has_tools and not last.saw_text
        return f"{wanted} Write a tool call's arguments as valid JSON." if invalid else wanted
    return f"You have thought enough. {wanted}" if last.saw_reasoning else wanted
