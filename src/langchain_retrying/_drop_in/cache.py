"""An LLM cache seen so that nothing but answers is served from it, or stored in it.

Its keys are the inner model's: an answer is an answer whatever the policy, so what the bare model
has stored is served, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.globals import get_llm_cache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation

from langchain_retrying._judge.reply import ReplyJudge, is_plain_text


def effective_cache(setting: BaseCache | bool | None) -> BaseCache | None:
    """The cache LangChain uses for a model whose `cache` is `setting`; None if it uses none."""
    if isinstance(setting, BaseCache):
        return setting
    return None if setting is False else get_llm_cache()


class AnswerCache(BaseCache):
    """A view of a cache: what is no answer of the inner model's is a miss, and is not stored."""

    def __init__(self, cache: BaseCache, *, text_counts: bool = True) -> None:
        """See a cache so.

        Args:
            cache: The one in use.
            text_counts: False: text is no answer, since a tool call is required.

        """
        self._cache = cache
        self._text_counts = text_counts

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Answers only."""
        return self._if_answered(self._cache.lookup(prompt, llm_string))

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Answers only."""
        return self._if_answered(await self._cache.alookup(prompt, llm_string))

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Answers only."""
        if self._are_an_answer(return_val):
            self._cache.update(prompt, llm_string, _without_account(return_val))

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """As `update`."""
        if self._are_an_answer(return_val):
            await self._cache.aupdate(prompt, llm_string, _without_account(return_val))

    def clear(self, **kwargs: Any) -> None:
        """Clear the cache."""
        self._cache.clear(**kwargs)

    async def aclear(self, **kwargs: Any) -> None:
        """Clear the cache."""
        await self._cache.aclear(**kwargs)

    def _if_answered(self, generations: Sequence[Generation] | None) -> Sequence[Generation] | None:
        if generations is None or not self._are_an_answer(generations):
            return None
        return generations

    def _are_an_answer(self, generations: Sequence[Generation]) -> bool:
        """Whether one of them is usable, and none is of another model or stands in for a reply."""
        accounts = [_account(generation) for generation in generations]
        if any(account and (account.keys() & _NOT_THE_MODELS) for account in accounts):
            return False
        return any(map(self._is_usable, generations))

    def _is_usable(self, generation: Generation) -> bool:
        message = _message(generation)
        if self._text_counts and is_plain_text(message.content):
            return True
        judge = ReplyJudge(text_counts=self._text_counts)
        judge.add(message, generation.generation_info)
        return judge.verdict().is_answer


_NOT_THE_MODELS = {"stand_in", "model"}
"""Parts of an account that tell that the message is not a reply of the inner model's."""


def _message(generation: Generation) -> Any:
    """The message; of a `Generation` without one, as old caches hold them, its text as one."""
    message = getattr(generation, "message", None)
    return AIMessage(content=generation.text) if message is None else message


def _account(generation: Generation) -> dict[str, Any] | None:
    account: dict[str, Any] | None = _message(generation).response_metadata.get("empty_retry")
    return account


def _without_account(generations: Sequence[Generation]) -> Sequence[Generation]:
    """What is served later was not retried then."""
    return [
        ChatGeneration(
            message=generation.message.model_copy(
                update={
                    "response_metadata": {
                        key: value
                        for key, value in generation.message.response_metadata.items()
                        if key != "empty_retry"
                    }
                }
            ),
            generation_info=generation.generation_info,
        )
        if isinstance(generation, ChatGeneration) and _account(generation) is not None
        else generation
        for generation in generations
    ]
