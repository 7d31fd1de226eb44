"""Any sequence of replies, remedies and bounds ends, within the bounds, in exactly one outcome."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from tenacity import retry_if_exception_type, stop_after_delay, stop_any, wait_fixed

from driven import Driven
from langchain_retrying import (
    EmptyCompletionError,
    FallbackModel,
    Nudge,
    RaiseOutputBudget,
    ReplyKind,
    RetryBudget,
    RetryPolicy,
    WithParams,
    repeat,
    stop_after_rejected_tokens,
)
from langchain_retrying._call.replies import StreamedReply, WholeReply
from langchain_retrying.testing import RecordingSleep, ScriptedChatModel

PROMPT = [HumanMessage("Hi")]
MODEL, OTHER = ScriptedChatModel(), ScriptedChatModel()
EMPTY = [ReplyKind.BLANK, ReplyKind.MALFORMED, ReplyKind.TRUNCATED, ReplyKind.BLOCKED]
REASON = {
    ReplyKind.BLANK: "stop",
    ReplyKind.MALFORMED: "malformed_function_call",
    ReplyKind.TRUNCATED: "length",
    ReplyKind.BLOCKED: "content_filter",
}

remedies = st.sampled_from(
    [
        repeat,
        Nudge(),
        Nudge("Go on."),
        WithParams(temperature=1.0),
        RaiseOutputBudget(),
        RaiseOutputBudget(ceiling=64),
        FallbackModel(OTHER),
        (Nudge(), WithParams(a=1), FallbackModel(OTHER)),
        lambda request, error: None,
    ]
)
ladders = st.dictionaries(st.sampled_from(EMPTY), st.none() | st.lists(remedies, max_size=4))
stops = st.lists(
    st.one_of(
        st.builds(stop_after_delay, st.integers(1, 60)),
        st.builds(stop_after_rejected_tokens, st.integers(1, 60)),
        st.builds(RetryBudget, reserve=st.integers(1, 3)),
    ),
    max_size=3,
)


def policy(max_retries, remedies, **arguments):
    """A policy that reaches the end of each ladder."""
    longest = max(len(ladder or ()) for ladder in [None, *(remedies or {}).values()])
    return RetryPolicy(max(max_retries, longest), remedies=remedies, **arguments)


policies = st.builds(
    policy,
    max_retries=st.integers(0, 6),
    wait=st.sampled_from([None, wait_fixed(0), wait_fixed(3)]),
    stop=stops.map(lambda several: stop_any(*several) if several else None),
    retry=st.sampled_from([None, retry_if_exception_type(TimeoutError)]),
    remedies=st.none() | ladders,
    accept=st.sampled_from([None, lambda messages, reply: reply.id == "accepted"]),
    max_held_bytes=st.integers(1, 20),
    on_exhausted=st.sampled_from(
        ["return", "raise", "So sorry.", AIMessage("Sorry."), lambda error: AIMessage("Sorry.")]
    ),
)


class RefusedError(Exception):
    status_code = 400


class OneCall(RuleBasedStateMachine):
    """A call as a driver sees it: attempts are answered until there is an outcome."""

    def __init__(self):
        super().__init__()
        self.clock = RecordingSleep()
        self.clock.__enter__()
        self.retries = 0  # of all calls
        self.answers = 0

    def teardown(self):
        self.clock.__exit__()

    @initialize(policy=policies, streamed=st.booleans(), budget=st.none() | st.integers(1, 32))
    def begin(self, policy, streamed, budget):
        self.policy = policy
        self.streamed = streamed
        self.kwargs = {} if budget is None else {"max_tokens": budget}
        self.outcomes = ["none yet"]
        self.next_call()

    @precondition(lambda self: self.outcomes)
    @rule()
    def next_call(self):
        reply_type = StreamedReply if self.streamed else WholeReply
        self.call = Driven(self.policy, PROMPT, self.kwargs, MODEL, reply_type)
        self.outcomes = []
        self.requests = 1
        self.tokens = 0

    running = precondition(lambda self: not self.outcomes)

    @running
    @rule(
        kind=st.sampled_from(EMPTY),
        tokens=st.integers(0, 40),
        seconds=st.integers(0, 20),
        accepted=st.booleans(),
    )
    def empty_reply(self, kind, tokens, seconds, accepted):
        self.clock.advance(seconds)
        self.tokens += tokens
        self.end(
            AIMessage(
                "",
                id="accepted" if accepted else None,
                usage_metadata={
                    "input_tokens": tokens,
                    "output_tokens": 0,
                    "total_tokens": tokens,
                },
                response_metadata={"finish_reason": REASON[kind]},
            )
        )

    @running
    @rule(text=st.sampled_from(["Hello.", "<", "42"]))
    def answer(self, text):
        self.end(AIMessage(text))

    @running
    @rule(error=st.sampled_from([TimeoutError, ValueError, RefusedError]))
    def exception(self, error):
        if self.call.raises(error()):
            self.take(self.call.outcome)
        else:
            self.outcomes.append("error")

    def end(self, message):
        if not self.streamed:
            result = ChatResult(generations=[ChatGeneration(message=message)])
            self.take(lambda: self.call.answer(result))
            return
        fields = message.model_dump(
            include={"content", "id", "usage_metadata", "response_metadata"}
        )
        chunk = ChatGenerationChunk(message=AIMessageChunk(**fields))
        self.take(lambda: self.call.answer([chunk]))

    def take(self, outcome):
        try:
            out = outcome()
        except EmptyCompletionError:
            self.outcomes.append("raised" if self.policy.on_exhausted == "raise" else "a fault")
            return
        if out is None:
            assert not self.call.is_over
            self.clock.advance(self.call.step.seconds)
            self.call.again()
            self.requests += 1
            self.retries += 1
            return
        messages = (
            [chunk.message for chunk in out]
            if self.streamed
            else [generation.message for generation in out.generations]
        )
        assert messages
        self.outcomes.append("over" if self.call.is_over else "answered")
        self.answers += not self.call.is_over

    @invariant()
    def bounds_hold(self):
        if not hasattr(self, "call"):
            return
        assert len(self.outcomes) <= 1
        assert "a fault" not in self.outcomes
        assert self.requests <= self.policy.max_retries + 1
        for stop in getattr(self.policy.stop, "stops", ()):
            if isinstance(stop, stop_after_delay) and self.requests > 1 and not self.outcomes:
                assert self.call._attempt_began - self.call._began < stop.max_delay
            if isinstance(stop, RetryBudget):
                assert self.retries <= stop.reserve + stop.share * self.answers
            if isinstance(stop, stop_after_rejected_tokens) and not self.outcomes:
                assert self.tokens < stop.max_tokens or not self.call.rejected

    @invariant()
    def what_is_sent_is_the_original_and_what_a_remedy_adds(self):
        if hasattr(self, "call"):
            (asked,) = self.call.messages
            assert asked.content.partition("\n\n")[0] == "Hi"
            assert self.call.model in (MODEL, OTHER)
            assert [HumanMessage("Hi")] == PROMPT


TestOneCall = OneCall.TestCase
TestOneCall.settings = settings(max_examples=200, stateful_step_count=15)
