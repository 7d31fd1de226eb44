"""Things that are not chat models but hold one: unwrapped, wrapped and put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import RunnableConfigurableFields

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

Wrap = Callable[[BaseChatModel], Any]


def wrap_inside(thing: Any, wrap: Wrap, wrapper: str) -> Any:
    """Wrap the one chat model that `thing` holds, and keep what is around it around the wrapper.

    `bind`, `bind_tools`, `with_config`, `with_retry` and `configurable_fields` leave one model
    inside, and so does `init_chat_model` with configurable fields. Where there is none or more
    than one, a `TypeError` says what to write.
    """
    if hasattr(type(thing), "_model_params"):  # first: see `Facade.__new__`
        return _wrap_when_configured(thing, wrap)
    if isinstance(thing, BaseChatModel):
        return wrap(thing)
    if isinstance(thing, RunnableBindingBase):
        return thing.model_copy(update={"bound": wrap_inside(thing.bound, wrap, wrapper)})
    if isinstance(thing, RunnableConfigurableFields) and isinstance(thing.default, BaseChatModel):
        return wrap(thing.default).configurable_fields(**thing.fields)
    raise TypeError(f"{_advice(thing)}, as in {wrapper}(model)")


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
    to it, so this overrides the private methods of its class that do both.
    """
    base: type = type(model)

    class ConfigurableModel(base):  # type: ignore[misc]  # known only here
        def _model(self, config: RunnableConfig | None = None) -> Any:
            built = base(
                default_config=self._default_config,
                configurable_fields=self._configurable_fields,
                config_prefix=self._config_prefix,
            )._model(config)
            wrapped = wrap(built)
            for name, args, kwargs in self._queued_declarative_operations:
                wrapped = getattr(wrapped, name)(*args, **kwargs)
            return wrapped

        def __getattr__(self, name: str) -> Any:
            attribute = super().__getattr__(name)
            if getattr(attribute, "__module__", None) != base.__module__:
                return attribute  # the default model's
            return lambda *args, **kwargs: same_class(attribute(*args, **kwargs))

        def with_config(self, *args: Any, **kwargs: Any) -> Any:
            return same_class(super().with_config(*args, **kwargs))

    def same_class(other: Any) -> Any:
        again = object.__new__(ConfigurableModel)
        again.__dict__.update(other.__dict__)
        return again

    return same_class(model)
