"""A call, whole or streamed: from what its attempts bring to what the caller gets. No I/O.

After each attempt `ended` gives what is to go out, or None: then the driver waits `seconds` and
makes the next attempt. An exception that `catches` has taken counts as an attempt without a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_retrying._call.attempts import Attempts, with_account
from langchain_retrying._call.held import HeldTokens, Opening, with_blocks_after
from langchain_retrying._call.llm_output import in_place_of
from langchain_retrying._call.run_managers import Token, error_of_empty_stream
from langchain_retrying._errors import add_note
from langchain_retrying._judge.reply import NOTHING, ReplyJudge, Verdict, is_plain_text

NO_RESULT = ChatResult(generations=[])


class WholeCall(Attempts):
    """A call whose replies come whole."""

    gate: HeldTokens

    def _new_gate(self) -> HeldTokens:
        gate = HeldTokens()
        if self.expected_tools:
            gate.judge = ReplyJudge(text_counts=False)
        return gate

    def catches(self, error: Exception, *, without_chunks: bool = True) -> bool:
        """Take an exception; False: it is to be raised."""
        return not self.gate.committed and super().catches(error)

    def ended(self, result: ChatResult | None) -> ChatResult | None:
        """Take a result, None after an exception; give the one for the caller, or None."""
        if result is None:
            return self.at_its_end() if self.is_over else None
        if self.asks_another:
            result = in_place_of(self._original[2], self.model, result)
        generations = result.generations
        if not self.gate.committed and (
            self.expected_tools
            or not generations
            or not is_plain_text(generations[0].message.content)
        ):
            verdict, result = _judge(result, text_counts=not self.expected_tools)
            if not verdict.is_answer:
                if self.reject(verdict, message_of(result) if generations else None):
                    return None
                return self.at_its_end(result)
        if self.raised or self.policy.budgets:
            self.answered()
        return self._accounted(result)

    def at_its_end(self, result: ChatResult = NO_RESULT) -> ChatResult:
        """What a call that is over gives: what stands in for the reply, or the last reply.

        Args:
            result: That of the last attempt; default: it brought none, or it is gone.

        Raises:
            EmptyCompletionError: If the policy says so.
            Exception: The inner model's, if that came instead of a reply.

        """
        message = self.stand_in()
        if message is not None:
            self.gate.drop()
            return _result_of(message, result.llm_output)
        if not (result.generations or self.nothing_came):
            return _result_of(self.last_message, result.llm_output)
        return self._accounted(result)

    def _accounted(self, result: ChatResult) -> ChatResult:
        account = self.account_of_retries()
        if account is None or not result.generations:
            return result
        first, *rest = result.generations
        first = first.model_copy(update={"message": with_account(first.message, account)})
        return result.model_copy(update={"generations": [first, *rest]})


class StreamedCall(Attempts):
    """A call whose replies come in chunks."""

    chunks: Any
    """What the attempt is read from; None before it is sent."""
    gate: Opening
    opening_class: type[Opening] = Opening
    _blocks_before = 0  # of reasoning that went out live, in attempts rejected later

    @property
    def amend(self) -> Callable[[Any], Any] | None:
        """What is done to each chunk that goes out; None: it flows straight through."""
        before = self._blocks_before
        return (lambda chunk: with_blocks_after(chunk, before)) if before else None

    def take_live(self) -> Iterable[Any]:
        """The chunks of reasoning that are to go out now."""
        return self._after_others(self.gate.take_live())

    def _after_others(self, items: Iterable[Any]) -> Iterable[Any]:
        before = self._blocks_before
        if not before:
            return items
        return [
            item if isinstance(item, Token) else with_blocks_after(item, before) for item in items
        ]

    def _new_gate(self) -> Opening:
        self._failed = False  # whether this attempt has ended in an exception
        self.chunks = None
        policy = self.policy
        gate = self.opening_class(policy.max_held_bytes)
        if self.expected_tools:
            gate.judge = ReplyJudge(text_counts=False)
        if not policy.hold_reasoning:
            gate.holds_reasoning = False
        if policy.max_held_seconds is not None:
            gate.until = self._attempt_began + policy.max_held_seconds
        return gate

    def catches(self, error: Exception, *, without_chunks: bool = True) -> bool:
        """Take an exception; False: it is to be raised."""
        self._failed = super().catches(error, without_chunks=not self.gate.has_come)
        return self._failed

    def explain(self, error: Exception, *, is_last_rejected: bool = False) -> None:
        """Note on an exception what was rejected before, and what was held when it came."""
        super().explain(error, is_last_rejected=is_last_rejected)
        gate = self.gate
        if gate.has_come and gate.holds_reasoning and not gate.committed:
            assert gate.judge is not None  # it has seen what has come
            what = ", ".join(sorted(gate.judge.verdict().seen)) or "nothing that shows"
            usage = gate.message().usage_metadata
            tokens = (
                f"{usage['input_tokens']} input and {usage['output_tokens']} output tokens"
                if usage
                else "no tokens reported"
            )
            add_note(error, f"What had come of the stream was held back: {what}; {tokens}.")

    def ended(self) -> Iterable[Any] | None:
        """Take the end, the commit or a bound; give what goes out first, or None."""
        gate = self.gate
        if not (gate.committed or self._failed):
            verdict = gate.end()
            if not verdict.is_answer:
                self.reject(verdict, gate.message() if gate.has_come else None)
        if gate.committed:
            if self.raised or self.policy.budgets:
                self.answered()
            held = gate.release(self.account_of_retries())
            return self._after_others(held) if self._blocks_before else held
        if not self.is_over:
            self._blocks_before += gate.blocks_sent
            gate.drop()
            return None
        return self.at_its_end()

    def at_its_end(self) -> Iterable[Any]:
        """What goes out of a call that is over: what stands in for the reply, or what is held.

        Raises:
            EmptyCompletionError: If the policy says so.
            Exception: The inner model's or LangChain's, if that came instead of a reply.

        """
        gate = self.gate
        message = self.stand_in()
        if message is not None:
            return gate.items_of(message)
        if self.nothing_came:
            if self.attempt_number > 1:  # as LangChain would raise it, but with a note
                self.raise_again(error_of_empty_stream())
            return ()
        if gate.nothing_is_held:
            return gate.items_of(self.last_message)
        return self._after_others(gate.release(self.account_of_retries()))


def _judge(result: ChatResult, *, text_counts: bool) -> tuple[Verdict, ChatResult]:
    """Judge all candidates; the first usable one comes first in the result that is returned.

    A result is empty only if every candidate is; the verdict is then that on the first.
    """
    verdicts = []
    for position, generation in enumerate(result.generations):
        judge = ReplyJudge(text_counts=text_counts)
        judge.add(generation.message, generation.generation_info)
        if result.llm_output:
            judge.note(result.llm_output)
        verdict = judge.verdict()
        if verdict.is_answer:
            if position:
                rest = list(result.generations)
                first = rest.pop(position)
                result = result.model_copy(update={"generations": [first, *rest]})
            return verdict, result
        verdicts.append(verdict)
    return (verdicts[0] if verdicts else NOTHING), result


def message_of(result: ChatResult) -> AIMessage:
    """The reply in a result, with the metadata that LangChain merges into it only later."""
    if not result.generations:
        return AIMessage(content="")
    generation = result.generations[0]
    message = generation.message
    metadata = {
        **(result.llm_output or {}),
        **(generation.generation_info or {}),
        **message.response_metadata,
    }
    if not isinstance(message, AIMessage):
        return AIMessage(content=message.content, response_metadata=metadata)
    return message.model_copy(update={"response_metadata": metadata})


def _result_of(message: AIMessage, llm_output: dict[str, Any] | None = None) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)], llm_output=llm_output)
