"""`RetryPolicy`: what is retried, how often, after which wait, and what happens in the end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from langchain_core.messages import AIMessage, BaseMessage
from tenacity import RetryCallState, wait_chain, wait_none
from tenacity.wait import wait_random_exponential

from langchain_retrying._errors import EmptyCompletionError
from langchain_retrying._judge.kinds import ReplyKind
from langchain_retrying._policy import checks
from langchain_retrying._policy.equality import are_equal
from langchain_retrying._policy.remedies import DEFAULT_NUDGE, Nudge, NudgeText, Rung, remedy_of
from langchain_retrying._policy.stops import RetryBudget, budgets_in

# Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
DEFAULT_WAIT = wait_chain(wait_none(), wait_random_exponential(multiplier=0.25, max=8))
"""First retry at once; then a random wait of at most 0.5, 1, 2, 4, 8, 8 ... seconds."""

_NUDGED = frozenset({ReplyKind.BLANK, ReplyKind.MALFORMED})
"""Kinds that are retried, and whose retry has the nudge, unless the policy says otherwise."""

_CALLABLES = {
    "wait": "a tenacity wait strategy such as wait_fixed(2)",
    "stop": "a tenacity stop strategy such as stop_after_delay(30)",
    "retry": "a tenacity retry predicate such as retry_if_exception_type(TimeoutError)",
    "accept": "a callable (messages, reply) that returns a bool",
    "reject": "a callable (messages, reply) that returns a bool",
}
"""Fields that hold a callable or None, and what it is to be."""
_BOOLS = ("hold_tool_calls", "leaked_tool_calls", "require_tool_call", "hold_reasoning")

OnExhausted = str | AIMessage | Callable[[EmptyCompletionError], AIMessage]


@dataclass(frozen=True, eq=False, repr=False)
class RetryPolicy:
    """How empty completions are retried.

    Frozen, hashable and picklable where its parts are; equal to another with equal parts, be they
    tenacity's strategies or remedies (an object of your own needs an `==` for that, as a dataclass
    has). One policy may serve any number of models, threads and event loops.

    Args:
        max_retries: Retries after the first attempt, so a call makes at most `max_retries + 1`
            requests. At least 0, which judges but never retries.
        wait: A tenacity wait strategy, in seconds. Default: the first retry at once, then full
            jitter with 0.5 s base and 8 s cap. None: no wait.
        stop: A further tenacity stop strategy; the call stops at whichever of it and
            `max_retries` comes first. It is asked as if the wait before the next attempt were
            over, so `stop_after_delay(30)` starts no attempt, and no wait for one, that begins
            30 s or more after the call. `stop_after_rejected_tokens` and `RetryBudget` are
            this package's own. `stop_when_event_set(event)` ends a wait
            (of `time.sleep`; an async call is ended by cancellation) and the call as soon as the
            event is set. None: only `max_retries` counts.
        retry: A tenacity retry predicate for exceptions of the inner model, such as
            `retry_if_exception_type(TimeoutError)`. None: exceptions are not retried; that is
            what the provider client's own `max_retries` is for.
        nudge: The message put at the end of a retried request, for `BLANK` and `MALFORMED` where
            `remedies` has no ladder for them: text, a message, or a callable `(messages, error)`
            that returns either, or None. Default: a wording that fits what happened. None: the
            request is repeated as it was.
        remedies: For each kind of empty reply that is to be retried, the ladder of what is
            changed: retry k uses rung k, the last one repeats. A rung is a remedy (`Nudge()`,
            `WithParams()`, `RaiseOutputBudget()`, `FallbackModel()`, `repeat`, a callable of your
            own), or a tuple of several that are applied together; a ladder has at most
            `max_retries` rungs. A kind whose ladder is None or empty is not retried; one that is
            not in the mapping keeps its default, which is `nudge` for `BLANK` and `MALFORMED`, and
            no retry for the others. None: the default for all.
        terminal_tools: Names of tools after whose result saying nothing is a proper end: a blank
            is then accepted as it is. A result that tells of an error does not count. Default:
            none.
        accept: A callable `(messages, reply) -> bool`; True accepts an empty reply as it is. It is
            asked about every empty reply. None: none is accepted.
        reject: A callable `(messages, reply) -> bool`, the mirror of `accept`: True makes an answer
            in text without a tool call a blank, such as a placeholder. A stream is held until its
            text is longer than it asks about, or over. None: no answer is rejected.
        reject_within: How long the text may be that `reject` is asked about, in characters; at
            least 1. What is useless is short. Default: 200.
        hold_tool_calls: Whether a stream that opens with a tool call is held to its end. Arguments
            that do not parse as they came are then `MALFORMED`, or `TRUNCATED` where the output
            budget was spent; LangChain mends what was cut, and an agent would call with it. What
            it costs: arguments are not seen as they grow. Default: it flows.
        leaked_tool_calls: Whether a reply without a tool call, whose text is or ends in a call of
            a bound tool in the markup of a model family (the server has not parsed it), is
            `MALFORMED`. The call is asked for again, and never executed. A stream is held only
            while its text may be such a call from the start; one after prose has been seen by
            then, and stays an answer. Default: it is an answer.
        require_tool_call: Whether text without a tool call is an empty reply where the request
            forces a tool call (`tool_choice` "any", "required" or a name, as `create_agent` does
            for a `ToolStrategy`). A stream of such a call is held until its tool call. Default:
            text is an answer.
        hold_reasoning: Whether reasoning is held until the reply is known to be an answer. False:
            chunks of reasoning (blocks or fields of its own; `<think>` in the text is held) go
            out as they come, ahead of what is held. What that costs: the reasoning of a rejected
            attempt has been seen, and is part of the message that a consumer adds up. Native
            protocol events are always held. Default: True.
        on_exhausted: What becomes of an empty reply that is not retried any more. `"return"`: it
            is returned as it came, or raised, where an exception came in its place. `"raise"`:
            `EmptyCompletionError`. Any other text stands in for the reply, with its id, usage and
            metadata. An `AIMessage` is returned in its place; so is what a callable makes of the
            `EmptyCompletionError`. A text of a single word is refused, since it may be a slip for
            "raise": an `AIMessage` can say it.
        max_held_bytes: How much of a stream is held while nothing usable has come, counted in
            characters of text and reasoning (white space alone counts 16 times) and one for each
            chunk; at least 1. At the bound the
            attempt is closed and counts as empty. The default, 2**20, is more than the largest
            output of any model.
        max_held_seconds: The longest wait for the first usable chunk of a streamed attempt, in
            seconds, above 0; then the attempt is closed and judged by what has come. A
            synchronous stream can only notice it when a chunk comes, so there a timeout of the
            provider's client has to end a silence. None: no such bound.

    Raises:
        TypeError: An argument is of a kind that can't be used.
        ValueError: A number is out of its bounds, a text is empty, a ladder is longer than
            `max_retries` or for `ANSWER`, or there is a `nudge` that would not be used, since
            `remedies` say what is done about both kinds that it is for.

    """

    max_retries: int = 2
    wait: Callable[[RetryCallState], float] | None = DEFAULT_WAIT
    stop: Callable[[RetryCallState], bool] | None = None
    retry: Callable[[RetryCallState], bool] | None = None
    nudge: NudgeText | Nudge | None = DEFAULT_NUDGE
    remedies: Mapping[ReplyKind, Sequence[Rung] | None] | None = None
    terminal_tools: Sequence[str] = ()
    accept: Callable[[Sequence[BaseMessage], AIMessage], bool] | None = None
    reject: Callable[[Sequence[BaseMessage], AIMessage], bool] | None = None
    reject_within: int = 200
    hold_tool_calls: bool = False
    leaked_tool_calls: bool = False
    require_tool_call: bool = False
    hold_reasoning: bool = True
    max_held_bytes: int = 2**20
    max_held_seconds: float | None = None
    on_exhausted: OnExhausted = "return"

    def __post_init__(self) -> None:
        checks.check_int("max_retries", self.max_retries, at_least=0)
        checks.check_int("max_held_bytes", self.max_held_bytes, at_least=1)
        checks.check_int("reject_within", self.reject_within, at_least=1)
        if self.max_held_seconds is not None:
            must = "max_held_seconds must be a number of seconds or None"
            checks.check_kind(must, self.max_held_seconds, int, float)
            if not self.max_held_seconds > 0:
                raise ValueError(f"max_held_seconds must be above 0, not {self.max_held_seconds}")
        for name in _BOOLS:
            checks.check_kind(f"{name} must be True or False", getattr(self, name), bool)
        for name, wanted in _CALLABLES.items():
            if getattr(self, name) is not None:
                checks.check_callable(name, getattr(self, name), f"{wanted}, or None")
        checks.check_on_exhausted(self.on_exhausted)
        must = "terminal_tools must be a list of names"
        checks.check_kind(must, self.terminal_tools, list, tuple, set, frozenset)
        for tool in self.terminal_tools:
            checks.check_kind(must, tool, str)
        object.__setattr__(self, "terminal_tools", tuple(self.terminal_tools))
        remedy_of(self.nudge)  # it is checked there
        if self.remedies is not None:
            ladders = checks.checked_ladders(self.remedies, self.max_retries)
            if self.nudge not in (None, DEFAULT_NUDGE) and ladders.keys() >= _NUDGED:
                raise ValueError("remedies replace nudge for both its kinds: write Nudge() there")
            object.__setattr__(self, "remedies", ladders)  # the caller's own may change

    @cached_property
    def has_doubts(self) -> bool:
        """Whether what looks like an answer is looked at twice."""
        return self.hold_tool_calls or self.leaked_tool_calls or self.reject is not None

    @cached_property
    def ladders(self) -> Mapping[ReplyKind, Sequence[Rung]]:
        """The remedies of each kind that is retried."""
        by_default = dict.fromkeys(_NUDGED, (remedy_of(self.nudge),))
        ladders = {**by_default, **(self.remedies or {})}
        return {kind: ladder for kind, ladder in ladders.items() if ladder}

    def waits(self, retry_state: RetryCallState) -> float:
        """How many seconds to wait before the next attempt."""
        return 0.0 if self.wait is None else checks.returned("wait", self.wait(retry_state))

    @cached_property
    def budgets(self) -> tuple[RetryBudget, ...]:
        """The budgets in `stop`, which are to be told of answers."""
        return tuple(budgets_in(self.stop))

    def __repr__(self) -> str:
        differing = (
            f"{field.name}={value!r}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        )
        return f"RetryPolicy({', '.join(differing)})"

    def __eq__(self, other: object) -> bool:
        return are_equal(self, other) if isinstance(other, RetryPolicy) else NotImplemented

    def __hash__(self) -> int:  # of what has one: most strategies and ladders have none
        return hash((self.max_retries, self.terminal_tools, self.max_held_seconds))


DEFAULT_POLICY = RetryPolicy()
