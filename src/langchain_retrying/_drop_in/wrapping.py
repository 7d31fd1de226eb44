"""Things that are not chat models but hold one: unwrapped, wrapped and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables.base import RunnableBindingBase

Wrap = Callable[[BaseChatModel], Any]


def wrap_inside(thing: Any, wrap: Wrap) -> Any:
    """Wrap the one chat model that `thing` is or holds, and keep what is around it around that.

    `bind`, `bind_tools`, `with_config`, `with_retry` and `configurable_fields` leave one model
    inside, and so does `init_chat_model` with configurable fields. Where there is none or more
    than one, a `TypeError` says what to write.
    """
    # Of the type, and first: pydantic 2.7's `isinstance` asks a configurable model for attributes.
    if hasattr(type(thing), "_model_params"):
        return _wrap_when_configured(thing, wrap)
    if isinstance(thing, BaseChatModel):
        return wrap(thing)
    if isinstance(thing, RunnableBindingBase):
        return thing.model_copy(update={"bound": wrap_inside(thing.bound, wrap)})
    # `RunnableConfigurableFields`, by what it has: it takes long to import.
    if hasattr(thing, "fields") and isinstance(getattr(thing, "default", None), BaseChatModel):
        return wrap(thing.default).configurable_fields(**thing.fields)
    raise TypeError(f"{_advice(thing)}, as in RetryingChatModel(model)")


def _advice(thing: Any) -> str:
    if thing is None:
        return "the model to wrap is missing"
    if isinstance(thing, type):
        return f"{thing.__name__} is a class: give an instance of it"
    if isinstance(thing, str):
        return f"{thing!r} is a name: write init_retrying_chat_model({thing!r}), or wrap a model"
    kind = type(thing).__name__
    if kind == "RunnableWithFallbacks":  # by its name: it takes long to import
        return f"{kind} holds several models: wrap each before with_fallbacks()"
    return f"inner_model must be a BaseChatModel, not {kind}"


def _wrap_when_configured(model: Any, wrap: Wrap) -> Any:
    """A configurable model of `init_chat_model` whose calls go to wrapped models.

    langchain offers no place between the model that it builds for a call and what had been bound
    to it, so this overrides the private method that does both, and what makes another of this.
    """
    build = type(model)._model
    with_nothing_bound = _like(model, _queued_declarative_operations=[])

    def build_and_wrap(config: Any = None) -> Any:
        wrapped = wrap(build(with_nothing_bound, config))
        for name, args, kwargs in model._queued_declarative_operations:
            wrapped = getattr(wrapped, name)(*args, **kwargs)
        return wrapped

    def wrapping(method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: _wrap_when_configured(method(*args, **kwargs), wrap)

    binding = ("bind_tools", "with_structured_output", "with_config")
    return _like(
        model, _model=build_and_wrap, **{name: wrapping(getattr(model, name)) for name in binding}
    )


def _like(thing: Any, **attributes: Any) -> Any:
    """A plain object like another, with some attributes of its own."""
    other = object.__new__(type(thing))
    other.__dict__.update(thing.__dict__, **attributes)
    return other
