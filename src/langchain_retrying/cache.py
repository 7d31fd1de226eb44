"""An LLM cache seen so that no empty reply is served from it, or stored in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.globals import get_llm_cache
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation

from langchain_retrying.reply import examine


def effective_cache(setting: BaseCache | bool | None) -> BaseCache | None:
    """The cache LangChain uses for a model whose `cache` is `setting`; None if it uses none."""
    if isinstance(setting, BaseCache):
        return setting
    return None if setting is False else get_llm_cache()


class AnswerCache(BaseCache):
    """A view of a cache: blanks stored earlier are misses, and only answers are stored."""

    def __init__(self, cache: BaseCache) -> None:
        self._cache = cache

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Answers only."""
        return _if_answered(self._cache.lookup(prompt, llm_string))

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Answers only."""
        return _if_answered(await self._cache.alookup(prompt, llm_string))

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Answers only, and not what stands in for one."""
        if _may_be_stored(return_val):
            self._cache.update(prompt, llm_string, _without_account(return_val))

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """As `update`."""
        if _may_be_stored(return_val):
            await self._cache.aupdate(prompt, llm_string, _without_account(return_val))

    def clear(self, **kwargs: Any) -> None:
        """Clear the cache."""
        self._cache.clear(**kwargs)

    async def aclear(self, **kwargs: Any) -> None:
        """Clear the cache."""
        await self._cache.aclear(**kwargs)


def _if_answered(generations: Sequence[Generation] | None) -> Sequence[Generation] | None:
    return generations if generations is not None and _answered(generations) else None


def _answered(generations: Sequence[Generation]) -> bool:
    return any(
        examine(_message(generation), generation.generation_info).is_answer
        for generation in generations
    )


def _message(generation: Generation) -> Any:
    """The message; of a `Generation` without one, as old caches hold them, its text as one."""
    message = getattr(generation, "message", None)
    return AIMessage(content=generation.text) if message is None else message


def _may_be_stored(generations: Sequence[Generation]) -> bool:
    return _answered(generations) and not any(
        (_account(generation) or {}).get("stand_in") for generation in generations
    )


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
