"""`llm_output` of another model's result, as the model that was asked first takes it. Pure."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatResult


def in_place_of(first: BaseChatModel, asked: BaseChatModel, result: ChatResult) -> ChatResult:
    """A result of the model asked, for the code of LangChain that runs in the first one's name.

    `generate` has the first model combine the `llm_output` of all results, which reads its own
    integration's keys and adds up what it finds. So another's goes into the message, where
    LangChain would have merged it, and in its place stands the usage in OpenAI's words: all
    integrations that combine anything take these, and so do callbacks.
    """
    combine = type(first)._combine_llm_outputs
    if result.llm_output is not None and combine is type(asked)._combine_llm_outputs:
        return result
    generations = list(result.generations)
    llm_output: dict[str, Any] = {"token_usage": {}}
    if generations:
        message = generations[0].message
        metadata = message.response_metadata
        if len(generations) == 1:  # LangChain merges no others
            metadata = {**(result.llm_output or {}), **metadata}
            message = message.model_copy(update={"response_metadata": metadata})
            generations = [generations[0].model_copy(update={"message": message})]
        usage = getattr(message, "usage_metadata", None)
        if usage:
            llm_output["token_usage"] = _in_words_of_openai(usage)
        if "model_name" in metadata:
            llm_output["model_name"] = metadata["model_name"]
    return result.model_copy(update={"generations": generations, "llm_output": llm_output})


def _in_words_of_openai(usage: UsageMetadata) -> dict[str, int]:
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }
