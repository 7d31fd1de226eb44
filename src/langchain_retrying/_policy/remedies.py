"""What the next attempt changes. Pure: a remedy takes a request and returns the next one.

Remedies form ladders, one for each kind of empty reply: retry k uses rung k, the last one repeats.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage

from langchain_retrying._errors import EmptyCompletionError
from langchain_retrying._judge.reply import ReplyKind
from langchain_retrying._policy.checks import check_nudge, returned
from langchain_retrying._policy.wrappers import is_wrapper


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

    @property
    def has_tools(self) -> bool:
        """Whether the model may call a tool."""
        return bool(self.kwargs.get("tools") or self.kwargs.get("functions"))


Remedy = Callable[[Request, EmptyCompletionError], Request | None]
"""`(original request, account of what was rejected so far) -> request of the next attempt`.

The request and what it holds are not to be changed: `dataclasses.replace` makes another. None says
that there is nothing to try, and ends the call as if no retry were left.
"""

Rung = Remedy | Sequence[Remedy]
"""A remedy, or several that are applied one after the other."""

NudgeText = (
    str
    | BaseMessage
    | Callable[[Sequence[BaseMessage], EmptyCompletionError], str | BaseMessage | None]
)
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
        check_nudge(self.nudge, "Nudge() for a wording that fits, or repeat to say nothing")

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request:
        """The request with the nudge at the end; the messages given are not changed."""
        if request.nudge_refused or _last_role(request) == "assistant":
            return request
        nudge: str | BaseMessage | None
        if self.nudge is None:
            nudge = _wording(request, error)
        elif isinstance(self.nudge, (str, BaseMessage)):
            nudge = self.nudge
        else:
            nudge = returned("nudge", self.nudge(request.messages, error))
        if nudge is None or nudge == "":
            return request
        if not isinstance(nudge, (str, BaseMessage)):
            raise TypeError(f"nudge must return a text, a message or None, not {nudge!r:.40}")
        messages = list(request.messages)
        if isinstance(nudge, BaseMessage):
            messages.append(nudge.model_copy(deep=True))  # the inner model may write into it
        elif _must_speak_inside(request):
            messages[-1] = _with_text(messages[-1], nudge)
        else:
            messages.append(HumanMessage(content=nudge))
        return replace(request, messages=messages, is_nudged=True)


DEFAULT_NUDGE = Nudge()
"""The wording that fits what happened."""


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
        # Numbers only: others, such as headers, may hold secrets.
        shown = (
            f"{key}={value!r}" if isinstance(value, (int, float)) else f"{key}=..."
            for key, value in self.params.items()
        )
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
        if not isinstance(result, (Request, type(None))):
            raise TypeError(f"a remedy must return a Request or None, not {type(result).__name__}")
        if result is not None and not issubclass(type(result.model), BaseChatModel):
            raise TypeError(
                f"a remedy's model must be a chat model, not {type(result.model).__name__}: put "
                "what is bound to one into the request's kwargs"
            )
        if result is not None and is_wrapper(result.model):
            # It would retry within each retry; this very wrapper without an end.
            raise TypeError("a remedy's model must not be wrapped: give its inner_model")
        changed = result or changed  # of several, one that has nothing to try is left out
    return changed


_ROLES = ((AIMessage, "assistant"), (HumanMessage, "user"), (ToolMessage, "tool"))


def _last_role(request: Request) -> str | None:
    """Whose turn the last message is."""
    last = request.messages[-1] if request.messages else None
    if isinstance(last, ChatMessage):
        role = last.role.lower()
        return {"human": "user", "ai": "assistant", "model": "assistant"}.get(role, role)
    return next((role for kind, role in _ROLES if isinstance(last, kind)), None)


def _must_speak_inside(request: Request) -> bool:
    """Whether a user's turn of its own may be refused."""
    role = _last_role(request)
    return role == "user" or (role == "tool" and "mistral" in request.model._llm_type)


def _with_text(message: BaseMessage, text: str) -> BaseMessage:
    content = message.content
    longer: Any = (
        f"{content}\n\n{text}"
        if isinstance(content, str)
        else [*(content or ()), {"type": "text", "text": text}]
    )
    return message.model_copy(update={"content": longer})


def _wording(request: Request, error: EmptyCompletionError) -> str:
    """What is wanted, without a word on what came: models answer that with apologies."""
    last = error.rejected[-1]
    again = error.attempts % 2 == 0  # so that no retry sends what the one before has sent
    if error.expected_tools:
        names = " or ".join(error.expected_tools)
        wanted = f"{'Please call' if again else 'Call'} {names} now, with what you know."
    else:
        wanted = f"{'Please tell' if again else 'Tell'} me the answer to my request, in a sentence "
        wanted += "if that is enough"
        if request.has_tools:
            wanted += ", or make a tool call that is still needed; do not repeat one you have made"
        wanted += "."
    if last.kind is ReplyKind.MALFORMED:
        if request.has_tools and not last.saw_text:
            wanted += " Write a tool call's arguments as valid JSON."
    elif last.kind is ReplyKind.TRUNCATED:
        wanted = f"Be brief. {wanted}"
    elif last.saw_reasoning:
        wanted = f"You have thought enough. {wanted}"
    return wanted
