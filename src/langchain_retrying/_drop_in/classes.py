"""The classes of wrappers: for each class of inner models one, derived from the wrapper's and that.

Code that looks at the class of a wrapped model sees the inner class: its name, its fields, its
methods. Whatever a bare model's class makes, this one makes wrapped.
"""

from __future__ import annotations

import copyreg
import functools
import threading
from abc import ABCMeta
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from langchain_core.language_models import BaseChatModel

from langchain_retrying._policy.wrappers import WRAPPER, is_wrapper

CACHING = "__langchain_retrying_caching__"
"""An attribute of derived classes: the same class, whose wrappers have a cache of their own."""

_LOOKS = ("__module__", "__qualname__", "__doc__", "__hash__")
_MAKERS = ("model_construct", "model_validate", "model_validate_json", "model_validate_strings")

# What a pydantic instance consists of: https://docs.pydantic.dev/latest/api/base_model/
_STATE = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_UNSET = object()

# Weak, so that classes made inside functions are freed with their last wrapper.
_derived_classes: WeakValueDictionary[tuple[type, type], Any] = WeakValueDictionary()
_deriving = threading.Lock()


def derived_class(base: Any, inner_class: type[BaseChatModel]) -> Any:
    """The one class of wrappers of class `base` around models of class `inner_class`."""
    with _deriving:
        derived = _derived_classes.get((base, inner_class))
        if derived is None:
            derived = _derived_classes[base, inner_class] = _derive(base, inner_class)
    return derived


def inner_class_of(cls: type) -> Any:
    """The class that a derived one has of the inner models; any other class as it is."""
    return cls.__bases__[-1] if WRAPPER in vars(cls) else cls


def share_state(wrapper: Any, inner_model: Any) -> None:
    """Let a wrapper have the very state of the inner model."""
    for name in _STATE:
        value = getattr(inner_model, name, _UNSET)  # of a model that was made without validation
        if value is not _UNSET:
            object.__setattr__(wrapper, name, value)


def _derive(base: Any, inner_class: type[BaseChatModel]) -> Any:
    name = inner_class.__name__
    looks = {WRAPPER: base, **{look: getattr(inner_class, look) for look in _LOOKS}}
    inner_metaclass: Any = type(inner_class)
    metaclass = _metaclass(base, inner_metaclass)
    try:
        derived = metaclass(name, (base, inner_class), {**looks, **_members(base, inner_class)})
    except TypeError as error:
        raise TypeError(f"{name} can't be wrapped: {error}") from error
    # Not of pydantic's making, which has no slot of a field's name.
    caching = ABCMeta.__new__(metaclass, name, (derived,), {**looks, "__slots__": ("cache",)})
    setattr(derived, CACHING, caching)
    return derived


def _members(base: Any, inner_class: type[BaseChatModel]) -> dict[str, Any]:
    members: dict[str, Any] = {
        "model_config": {"defer_build": inner_class.model_config.get("defer_build", False)},
        **{name: staticmethod(_wrapping(base, getattr(inner_class, name))) for name in _MAKERS},
    }
    # LangChain asks the class whether a model can stream, and in which ways.
    if inner_class._stream is BaseChatModel._stream:
        members["_stream"] = BaseChatModel._stream
        if inner_class._astream is BaseChatModel._astream:
            members["_astream"] = BaseChatModel._astream
    for name, hook in base._optional_hooks().items():
        if getattr(inner_class, name, None) is not None:
            members[name] = hook  # noqa: PERF403 -- after the others
    if inner_class.model_config.get("validate_assignment"):
        members["__getattribute__"] = _get_from_replaced_state
    return members


def _wrapping(base: Any, make: Callable[..., Any]) -> Callable[..., Any]:
    """A way to make models; those that it would make bare are wrapped."""

    def make_and_wrap(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        return made if is_wrapper(made) else base(made)

    return make_and_wrap


def _get_from_replaced_state(wrapper: Any, name: str) -> Any:
    """Look an attribute up where pydantic replaces the whole state with each assignment."""
    get = object.__getattribute__
    inner_model = get(wrapper, "inner_model")
    if get(wrapper, "__dict__") is not get(inner_model, "__dict__"):
        share_state(wrapper, inner_model)
    return get(wrapper, name)


class _Subclassing(type):
    """Makes of a subclass of `type(model)`, where `model` is wrapped, one of the inner class.

    So it is what it would be without the wrapper, its methods are below the retries as those of
    the inner class are, and it can be pickled; what is made by calling it is wrapped.
    """

    def __new__(mcs, name: str, bases: Any, namespace: Any, **kwargs: Any) -> Any:
        if WRAPPER not in namespace:
            bases = tuple(map(inner_class_of, bases))
        return super().__new__(mcs, name, bases, namespace, **kwargs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _wrapping(getattr(cls, WRAPPER), super().__call__)(*args, **kwargs)


@functools.cache
def _metaclass(base: type, inner: type) -> Any:
    """The metaclass of wrappers of class `base` around models whose class has the other one.

    Its attribute tells subclasses, which are not derived from `base`, which wrappers to make.
    """
    if issubclass(inner, _Subclassing):
        return inner
    metaclass = type(inner.__name__, (_Subclassing, inner), {WRAPPER: base})
    copyreg.pickle(metaclass, _reduced)
    return metaclass


def _reduced(cls: type) -> str | tuple[Any, ...]:
    """How pickle keeps a class: a derived one is found nowhere by name, so it is derived again."""
    return (derived_class, cls.__bases__) if WRAPPER in vars(cls) else cls.__qualname__
