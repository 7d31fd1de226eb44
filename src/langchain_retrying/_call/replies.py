"""What one attempt brings, held back until it is known to be an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_retrying._call import clock
from langchain_retrying._call.chunks import (
    blocks_used,
    chunk_of,
    live_part,
    merged,
    message_in,
    message_of,
    size_of,
    with_account,
    with_blocks_after,
)
from langchain_retrying._call.run_managers import Token, error_of_empty_stream
from langchain_retrying._judge.kinds import ANSWER, NOTHING, Verdict
from langchain_retrying._judge.reply import ReplyJudge, examine
from langchain_retrying._judge.visible_text import is_plain_text, text_in
from langchain_retrying._policy.policy import RetryPolicy

_RUN = 64
"""Held chunks beyond this many are merged in runs of it, and so are the runs: 100,000 take less
than 1 MB instead of 190."""


_NO_RESULT = ChatResult(generations=[])


class WholeReply:
    """A reply that comes as a whole, and the tokens that were reported before it came."""

    def __init__(
        self, policy: RetryPolicy, text_counts: bool, doubts: Any = None, before: Any = None
    ) -> None:
        self.result = _NO_RESULT
        self.is_shown = False
        """Whether tokens have been let through, so that the reply can't be taken back."""
        self.has_come = False
        self._text_counts = text_counts
        self._doubts = doubts
        self._tokens: list[Token] = []
        self._judge: ReplyJudge | None = None

    def hold_token(self, token: Token) -> Iterable[Token]:
        """Hold a token until what the tokens say shows an answer; gives those to be sent now."""
        self._tokens.append(token)
        if not self.is_shown:
            if self._judge is None:
                self._judge = ReplyJudge(text_counts=self._text_counts)
            chunk, judge = token.said, self._judge
            is_text = not hasattr(chunk, "message")
            self.is_shown = judge.add_content(chunk) if is_text else judge.add(chunk.message)
        if not self.is_shown:
            return ()
        tokens, self._tokens = self._tokens, []
        return tokens

    def verdict(self) -> Verdict:
        """The verdict: a result is empty only if every candidate is, and then as the first is.

        The first usable candidate is put first, since `invoke` reads that.
        """
        if self.is_shown:
            return ANSWER
        generations = self.result.generations
        if generations and self._is_plain(generations[0]):
            return ANSWER
        verdicts = list(map(self._verdict_on, generations))
        first = next((i for i, verdict in enumerate(verdicts) if verdict.is_answer), 0)
        if first:
            generations = [generations[first], *generations[:first], *generations[first + 1 :]]
            self.result = self.result.model_copy(update={"generations": generations})
        return verdicts[first] if verdicts else NOTHING

    def _is_plain(self, candidate: ChatGeneration) -> bool:
        may_be = self._text_counts and self._doubts is None
        return may_be and is_plain_text(candidate.message.content)

    def _verdict_on(self, candidate: ChatGeneration) -> Verdict:
        judge = ReplyJudge(text_counts=self._text_counts)
        judge.add(candidate.message, candidate.generation_info)
        if self.result.llm_output:
            judge.note(self.result.llm_output)
        verdict = judge.verdict()
        if verdict.is_answer and self._doubts is not None:
            verdict = self._doubts.verdict_on(verdict, candidate.message)
        return verdict

    def message(self) -> AIMessage | None:
        """The reply that `invoke` would give; None: none came."""
        return message_in(self.result)

    def as_it_came(self, account: dict[str, Any] | None) -> Sequence[Any]:
        """The tokens and the result, with the account of earlier attempts on its first message."""
        result = self.result
        if account is not None and result.generations:
            first, *rest = result.generations
            first = first.model_copy(update={"message": with_account(first.message, account)})
            result = result.model_copy(update={"generations": [first, *rest]})
        return [*self._tokens, result]

    def made_of(self, message: AIMessage) -> Sequence[Any]:
        """A message in the form of the reply, and in its place."""
        generations = [ChatGeneration(message=message)]
        return [ChatResult(generations=generations, llm_output=self.result.llm_output)]

    def held_so_far(self) -> str:
        """Empty: a result comes whole, or not at all."""
        return ""

    def error_of_nothing(self) -> Exception | None:
        """None: a result without a candidate is one, too."""
        return None


class StreamedReply:
    """A reply that comes in chunks, and the tokens that are reported meanwhile, in order."""

    _runs: list[int]
    """How many chunks at the end of what is held are not merged; before them, how many are of one
    run, of a run of runs ..."""
    _paused: float
    """When reasoning went out live."""

    def __init__(
        self, policy: RetryPolicy, text_counts: bool, doubts: Any = None, before: Any = None
    ) -> None:
        """Begin to hold.

        Args:
            policy: For what is held, and how much of it.
            text_counts: False: text is no answer, since a tool call is required.
            doubts: What looks twice at an answer; None: nothing does.
            before: The reply of the attempt before, if there was one.

        """
        self.source: Any = None
        """What the chunks are read from; None before the request is sent."""
        self.is_shown = False
        """Whether the reply is known to be an answer, so that it flows."""
        self.has_come = False
        """Whether a chunk has come that did not show an answer."""
        self.live: Sequence[Any] = ()
        """Chunks of reasoning that are to go out now."""
        self.until: float | None = None
        """When holding ends, by the clock of `clock.monotonic`; None: there is no such bound."""
        if policy.max_held_seconds is not None:
            self.until = clock.monotonic() + policy.max_held_seconds
        self._holds_reasoning = policy.hold_reasoning
        self._bytes_left = policy.max_held_bytes
        self._doubts = doubts
        self._text = ""  # so far, where there are doubts
        self._judge: ReplyJudge | None = None
        if doubts is not None or not text_counts:  # text needs a closer look
            self._judge = ReplyJudge(text_counts=text_counts)
        # How many indexes of content blocks reasoning that went out live has used: until now, and
        # in attempts before this one.
        self._blocks_used = self._blocks_before = 0 if before is None else before._blocks_used
        self._held: list[Any] = []
        # Text and blocks do not add up the same in any order, so a run is of one type of content.
        self._run_type: type | None = None

    def add(self, chunk: Any) -> bool:
        """Hold a chunk; True to stop reading: at an answer, at a bound, or to `take_live`."""
        message = chunk.message
        content = message.content
        if self._judge is None:
            if is_plain_text(content):
                self._held.append(chunk)
                self.is_shown = True
                return True
            self._judge = ReplyJudge()
        if self._shows(chunk, message, chunk.generation_info):
            return True
        if not (self._holds_reasoning or self.is_late()) and examine(message).seen == {"reasoning"}:
            live, chunk = live_part(chunk)
            self.live = [*self.live, live]
            used = self._blocks_before + blocks_used(live.message.content)
            self._blocks_used = max(self._blocks_used, used)
            if chunk is None:
                return True
            message = chunk.message
        self._hold_merged(chunk, type(content))
        parts = (message.content, message.additional_kwargs, chunk.generation_info)
        return self._is_at_a_bound(parts) or bool(self.live)

    def _shows(self, item: Any, said: Any, generation_info: Any) -> bool:
        """Judge a chunk or event by what it says; if that shows an answer, hold it."""
        assert self._judge is not None  # made before
        shows = self._judge.add(said, generation_info)
        if self._doubts is not None:
            self._text += text_in(said.content)
            shows = shows and not self._doubts.remain(self._text, self._judge.verdict().seen)
        if not shows:
            self.has_come = True
            return False
        self._held.append(item)
        self.is_shown = True
        return True

    def _is_at_a_bound(self, parts: Sequence[Any]) -> bool:
        """Count parts of what is held; whether it is more, or longer, than the policy allows.

        What is held in doubt only is not cut there, but flows.
        """
        self._bytes_left -= 1  # nothing at all, for ever, must come to an end too
        for part in parts:
            if part:
                self._bytes_left -= size_of(part)
        is_at_a_bound = self._bytes_left < 0 or self.is_late()
        self.is_shown = is_at_a_bound and self._doubts is not None and not self.is_empty()
        return is_at_a_bound

    def is_late(self) -> bool:
        """Whether holding has lasted too long."""
        return self.until is not None and clock.monotonic() >= self.until

    def _hold_merged(self, chunk: Any, kind: type) -> None:
        """Hold a chunk; merge a run before it that is full, then the run of runs, and so on."""
        if kind is not self._run_type:
            self._run_type, self._runs = kind, [0]
        for level, count in enumerate(self._runs):
            if count < _RUN:
                break
            self._held[-_RUN:] = [merged(self._held[-_RUN:])]
            self._runs[level] = 0
            if level + 1 == len(self._runs):
                self._runs.append(0)
            self._runs[level + 1] += 1
        self._held.append(chunk)
        self._runs[0] += 1

    def hold_token(self, token: Token) -> Iterable[Token]:
        """Hold a token in its place among the chunks; those of an answer go through."""
        if self.is_shown:
            return (token,)
        self._held.append(token)
        self._run_type = None  # a run ends at a token
        return ()

    def take_live(self) -> Iterable[Any]:
        """Take what is in `live`; the time until `resume` is the consumer's."""
        self._paused = clock.monotonic()
        live, self.live = self.live, ()
        return self._in_order(live) if self._blocks_before else live

    def resume(self) -> None:
        """Read on after `take_live`."""
        if self.until is not None:
            self.until += clock.monotonic() - self._paused

    def is_empty(self) -> bool:
        """Whether what has come is not an answer, as far as can be told now."""
        return self._judge is None or not self._judge.verdict().is_answer

    def verdict(self) -> Verdict:
        """The verdict, at an answer, when the stream has ended or when a bound is reached."""
        if self.is_shown:
            return ANSWER
        verdict = NOTHING if self._judge is None else self._judge.verdict()
        if verdict.is_answer and self._doubts is not None:
            verdict = self._doubts.verdict_on(verdict, self._sum())
        self.is_shown = verdict.is_answer
        return verdict

    def message(self) -> AIMessage | None:
        """What is held as one message; None: no chunk has come."""
        return message_of(self._chunks()) if self.has_come else None

    def as_it_came(self, account: dict[str, Any] | None) -> Iterable[Any]:
        """All that is held, in order, with the account of earlier attempts on the first chunk."""
        held, self._held = self._held, []
        if account is not None:
            for position, item in enumerate(held):
                if isinstance(item, ChatGenerationChunk):
                    message = with_account(item.message, account)
                    held[position] = item.model_copy(update={"message": message})
                    break
            else:  # all that came has gone out live
                if self.has_come:
                    held.append(chunk_of(with_account(AIMessage(content=""), account)))
        return self._in_order(held) if self._blocks_before else held

    def made_of(self, message: AIMessage) -> Iterable[Any]:
        """A whole message as a stream has it."""
        return (chunk_of(message),)

    def amendment(self, account: dict[str, Any] | None) -> Callable[[Any], Any] | None:
        """What is done to each chunk that flows; None: it flows straight through."""
        before = self._blocks_before
        return (lambda chunk: with_blocks_after(chunk, before)) if before else None

    def held_so_far(self) -> str:
        """What had come of a stream that breaks while it is held; empty: nothing was held."""
        if not self.has_come or not self._holds_reasoning or self.is_shown:
            return ""
        assert self._judge is not None  # it has seen what has come
        what = ", ".join(sorted(self._judge.verdict().seen)) or "nothing that shows"
        message = self.message()
        usage = message.usage_metadata if message is not None else None
        if usage is None:
            return f"{what}; no tokens reported"
        tokens = f"{usage['input_tokens']} input and {usage['output_tokens']} output tokens"
        return f"{what}; {tokens}"

    def error_of_nothing(self) -> Exception | None:
        """What LangChain is about to raise, since the stream brings no chunk."""
        return error_of_empty_stream()

    def _sum(self) -> Any:
        """All that has come, as what the judge takes."""
        chunk = merged(self._chunks())
        metadata = {**(chunk.generation_info or {}), **chunk.message.response_metadata}
        return chunk.message.model_copy(update={"response_metadata": metadata})

    def _chunks(self) -> list[Any]:
        return [item for item in self._held if not isinstance(item, Token)]

    def _in_order(self, items: Sequence[Any]) -> Iterable[Any]:
        """Items, with their content blocks behind those that earlier attempts have shown."""
        before = self._blocks_before
        return [
            item if isinstance(item, Token) else with_blocks_after(item, before) for item in items
        ]
