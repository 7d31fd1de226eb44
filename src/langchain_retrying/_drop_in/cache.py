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

from langchain_retrying._judge.reply import ReplyJudge
from langchain_retrying._judge.visible_text import is_plain_text

_ACCOUNT = "empty_retry"
_NOT_THE_MODELS = {"stand_in", "model"}
"""Parts of an account that tell that the message is not a reply of the inner model's."""


def effective_cache(setting: BaseCache | bool | None) -> BaseCache | None:
    """The cache LangChain uses for a model whose `cache` is `setting`; None if it uses none."""
    if isinstance(setting, BaseCache):
        return setting
    return None if setting is False else get_llm_cache()


class AnswerCache(BaseCache):
    """A view of a cache: what is no answer of the inner model's is a miss, and is not stored."""

    def __init__(self, cache: BaseCache, text_counts: bool) -> None:
        """See a cache so.

        Args:
            cache: The one in use.
            text_counts: False: text is no answer, since a tool call is required.

        """
        self._cache = cache
        self._text_counts = text_counts

    def is_view_of(self, cache: BaseCache, text_counts: bool) -> bool:
        """Whether it is what would be made of these."""
        return self._cache is cache and self._text_counts is text_counts

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Answers only."""
        found = self._cache.lookup(prompt, llm_string)
        return found if found and self._is_answer(found) else None

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Answers only."""
        found = await self._cache.alookup(prompt, llm_string)
        return found if found and self._is_answer(found) else None

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Answers only."""
        if self._is_answer(return_val):
            self._cache.update(prompt, llm_string, [*map(_without_account, return_val)])

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """As `update`."""
        if self._is_answer(return_val):
            await self._cache.aupdate(prompt, llm_string, [*map(_without_account, return_val)])

    def clear(self, **kwargs: Any) -> None:
        """Clear the cache."""
        self._cache.clear(**kwargs)

    def _is_answer(self, generations: Sequence[Generation]) -> bool:
        """Whether one of them is usable, and none is of another model or stands in for a reply."""
        usable = False
        for generation in generations:
            message = _message(generation)
            account = message.response_metadata.get(_ACCOUNT)
            if account and not _NOT_THE_MODELS.isdisjoint(account):
                return False
            usable = usable or self._is_usable(message, generation)
        return usable

    def _is_usable(self, message: Any, generation: Generation) -> bool:
        if self._text_counts and is_plain_text(message.content):  # told at a glance
            return True
        judge = ReplyJudge(text_counts=self._text_counts)
        judge.add(message, generation.generation_info)
        return judge.verdict().is_answer


def _message(generation: Any) -> Any:
    """The message; of a `Generation` without one, as old caches hold them, its text as one."""
    if isinstance(generation, ChatGeneration):
        return generation.message
    return AIMessage(content=generation.text)


def _without_account(generation: Generation) -> Generation:
    """What is served later was not retried then."""
    message = _message(generation)
    if _ACCOUNT not in message.response_metadata:
        return generation
    metadata = {key: value for key, value in message.response_metadata.items() if key != _ACCOUNT}
    message = message.model_copy(update={"response_metadata": metadata})
    return ChatGeneration(message=message, generation_info=generation.generation_info)
