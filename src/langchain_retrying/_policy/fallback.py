"""`FallbackModel`: the remedy that asks another model, and how to ask one of another kind."""

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables.base import RunnableBinding
from langchain_core.utils.function_calling import convert_to_openai_function

from langchain_retrying._errors import EmptyCompletionError
from langchain_retrying._judge.visible_text import text_in
from langchain_retrying._policy import tool_choice
from langchain_retrying._policy.checks import check_kind
from langchain_retrying._policy.remedies import Request
from langchain_retrying._policy.wrappers import unwrapped

logger = logging.getLogger("langchain_retrying")

_MODEL = ("model", "model_name", "model_id", "modelId")
"""Call arguments that say which model is asked."""
_SCHEMAS = ("function", "toolSpec", "input_schema", "properties")
"""Where the schema of a tool stands that has another type, or no name."""


@dataclass(frozen=True)
class FallbackModel:
    """The remedy that asks another model.

    A model of the same integration gets all call arguments of the request. To one of another,
    tools and a forced tool choice are bound anew, and the assistant's turns go as text and tool
    calls; the other arguments (`temperature`,
    `response_format` ...) mean nothing to it and are left out, so bind to it what it is to have:
    `FallbackModel(ChatOllama(model="b").bind(format="json"))`. So structured output that rests on
    such arguments, and not on a tool, needs a fallback of the same integration.

    Args:
        model: A chat model, or a binding of one. It is called underneath, as the inner model is:
            its own callbacks and cache take no part, nor does a `RetryingChatModel` around it;
            its rate limiter does.

    Raises:
        TypeError: `model` is neither.

    """

    model: BaseChatModel | RunnableBinding  # type: ignore[type-arg]  # pydantic would make a class

    def __post_init__(self) -> None:
        must = "FallbackModel needs a chat model or a binding of one"
        check_kind(must, _unbound(self.model)[0], BaseChatModel)

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request | None:
        """The same messages for the other model; None: it can't have the tools."""
        model, bound = _unbound(self.model)
        replaced = tool_choice.TOOL_ARGUMENTS if tool_choice.tools_of(bound) else ()
        left_out = (*_MODEL, *replaced)
        kwargs = {key: value for key, value in request.kwargs.items() if key not in left_out}
        if _is_of_one_integration(model, request.model):
            return replace(request, model=model, kwargs={**kwargs, **bound})
        try:
            model, tools = _unbound(_with_tools(model, kwargs))
        except Exception as refusal:  # of the integration's own; without it, a blank is returned
            name, why = type(model).__name__, type(refusal).__name__
            logger.warning("%s can't stand in, it does not take the tools (%s)", name, why)
            return None
        messages = [_retold(message) for message in request.messages]
        return replace(request, messages=messages, model=model, kwargs={**tools, **bound})


def _unbound(runnable: Any) -> tuple[Any, Mapping[str, Any]]:
    """A model, and what is bound to it."""
    bound: Mapping[str, Any] = {}
    while isinstance(runnable, RunnableBinding):
        runnable, bound = runnable.bound, {**runnable.kwargs, **bound}
    return unwrapped(runnable), bound  # its retries would multiply those of the call


def _is_of_one_integration(one: BaseChatModel, other: BaseChatModel) -> bool:
    """Whether call arguments mean the same to both: they take tools by the same method."""
    bind_tools = type(one).bind_tools
    return type(one) is type(other) or (
        bind_tools is type(other).bind_tools is not BaseChatModel.bind_tools
    )


def _with_tools(model: BaseChatModel, kwargs: Mapping[str, Any]) -> Any:
    """The model with the tools of a request for another integration, in the form it takes."""
    given = [tool for tool in tool_choice.tools_of(kwargs) if not _runs_at_the_provider(tool)]
    tools = [_as_function(tool) for tool in given]
    if not tools or tool_choice.forbids_tools(kwargs):
        return model
    names = [tool["name"] for tool in tools]
    forced = [name for name in tool_choice.forced_tools(kwargs) if name in names]
    # Where `bind_tools` has no such parameter, its words are the provider's own.
    takes_choice = "tool_choice" in inspect.signature(model.bind_tools).parameters
    word = forced[0] if len(forced) == 1 < len(names) else "any"
    choice = {"tool_choice": word} if forced and takes_choice else {}
    openai = [{"type": "function", "function": tool} for tool in tools]
    try:
        return model.bind_tools(openai, **choice)
    except ValueError:  # some models can't be forced; Cohere takes JSON schemas only
        return model.bind_tools([_as_json_schema(tool) for tool in tools])


def _runs_at_the_provider(tool: Any) -> bool:
    """Whether it is the provider's own tool, such as web search, which another has not.

    A tool of the caller's has a schema of its arguments, or at least is of no other type.
    """
    if not isinstance(tool, Mapping) or any(key in tool for key in _SCHEMAS):
        return False
    return tool.get("type", "function") != "function" or "name" not in tool


def _as_function(tool: Any) -> dict[str, Any]:
    """A tool as OpenAI's functions are."""
    if isinstance(tool, Mapping):
        tool = tool.get("function") or {key: tool[key] for key in tool if key != "type"}
    return convert_to_openai_function(tool)


def _as_json_schema(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, **function.get("parameters", {})}
    return {**schema, "title": function["name"], "description": function.get("description", "")}


def _retold(message: BaseMessage) -> BaseMessage:
    """A message with the assistant's turn in the words of all integrations: text and tool calls.

    Blocks of reasoning, of tool calls and of the provider's own tools stand there in the format
    of who made them: others raise at them, send them on to be refused, or lose the text with them.
    """
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return message
    # `output_version`, among the metadata, would say that the content is not text.
    update = {"content": text_in(message.content), "response_metadata": {}}
    return message.model_copy(update=update)
