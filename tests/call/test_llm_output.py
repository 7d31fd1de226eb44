"""`llm_output` of a fallback's result: the first model's code combines it, callbacks read it."""

from __future__ import annotations

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_retrying import FallbackModel, ReplyKind, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel

USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
IN_WORDS_OF_OPENAI = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


class Strict(ScriptedChatModel):
    """Combines as ChatMistralAI and ChatGroq do: what it does not find it stumbles over."""

    def _combine_llm_outputs(self, llm_outputs):
        totals = [one["token_usage"].get("total_tokens", 0) for one in llm_outputs if one]
        return {"token_usage": {"total_tokens": sum(totals)}}


class Same(Strict):
    """Another class of the same integration."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        result = super()._generate(messages, stop, run_manager, **kwargs)
        return result.model_copy(update={"llm_output": {"token_usage": {"total_tokens": 7}}})


class Other(ScriptedChatModel):
    """Gives the result it is told to give."""

    result: ChatResult

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return self.result


class Ends(BaseCallbackHandler):
    def __init__(self):
        self.llm_outputs = []

    def on_llm_end(self, response, **kwargs):
        self.llm_outputs.append(response.llm_output)


def asked(other, first=None, **policy):
    """What comes of a call that falls back: the first message, and what was told of the usage."""
    remedies = {ReplyKind.BLANK: [FallbackModel(other)]}
    policy = RetryPolicy(wait=None, max_retries=1, remedies=remedies, **policy)
    ends = Ends()
    model = RetryingChatModel(first or Strict([""]), policy)
    result = model.generate([[HumanMessage("Hi")]], callbacks=[ends])
    return result.generations[0][0].message, ends.llm_outputs[0], result.llm_output


def result_of(*messages, **llm_output):
    generations = [ChatGeneration(message=message) for message in messages]
    return ChatResult(generations=generations, llm_output=llm_output or None)


def test_it_goes_into_the_message_and_the_usage_stands_in_its_place():
    said = AIMessage("Hello.", usage_metadata=USAGE, response_metadata={"a": 1})
    other = Other([], result=result_of(said, usage={"cached": None}, model_name="b", a=2))
    message, told, combined = asked(other)
    metadata = {key: message.response_metadata[key] for key in ("a", "usage", "model_name")}
    assert metadata == {"a": 1, "usage": {"cached": None}, "model_name": "b"}
    assert told == {"token_usage": IN_WORDS_OF_OPENAI, "model_name": "b"}
    assert combined == {"token_usage": {"total_tokens": 3}}
    assert said.response_metadata == {"a": 1}


def test_one_without_any_is_given_the_usage_too():
    _, told, combined = asked(Other([], result=result_of(AIMessage("Hi", usage_metadata=USAGE))))
    assert told == {"token_usage": IN_WORDS_OF_OPENAI}
    assert combined == {"token_usage": {"total_tokens": 3}}
    _, told, _ = asked(Strict(["Hello."]))  # of the same integration, as the Responses API's are
    assert told == {"token_usage": {}}


@pytest.mark.parametrize("said", [AIMessage("Hello."), ChatMessage("Hello.", role="a")])
def test_of_unknown_usage_nothing_is_said(said):
    _, told, _ = asked(Other([], result=result_of(said, usage={})))
    assert told == {"token_usage": {}}


def test_several_candidates_stay_as_they_came():
    """LangChain merges nothing into them."""
    candidates = [AIMessage("One.", usage_metadata=USAGE), AIMessage("Two.")]
    message, told, _ = asked(Other([], result=result_of(*candidates, b=1)))
    assert message.content == "One."
    assert "b" not in message.response_metadata
    assert told == {"token_usage": IN_WORDS_OF_OPENAI}


def test_that_of_the_same_integration_is_left_as_it_is():
    _, told, _ = asked(Same(["Hello."]))
    assert told == {"token_usage": {"total_tokens": 7}}


@pytest.mark.parametrize(
    "result", [result_of(), result_of(AIMessage(""), a=1)], ids=["no candidate", "a blank one"]
)
def test_a_blank_of_another_is_combined_as_well(result):
    first = Strict([""])
    assert asked(Other([], result=result), first, on_exhausted="Sorry, nothing.")[1:] == (
        {"token_usage": {}},
        {"token_usage": {"total_tokens": 0}},
    )


def test_a_reply_after_the_blank_of_the_first_alone_is_its_own():
    first = Same(["", "Hello."])
    model = RetryingChatModel(first, RetryPolicy(wait=None))
    result = model.generate([[HumanMessage("Hi")]])
    assert result.llm_output == {"token_usage": {"total_tokens": 7}}
