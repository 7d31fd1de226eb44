"""What makes the wrapper stand in for the inner model: its class, its state, its copies.

A wrapper is an instance of a class derived, once per inner class, from the wrapper's class and the
inner model's. It shares the inner model's state, so all code of the inner class that is not a
generation hook runs on the wrapper as it runs on the inner model: whatever that class knows about
itself, binds or parses, the wrapper does too.
"""

from __future__ import annotations

import copy
import copyreg
import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

from langchain_core.language_models import BaseChatModel
from pydantic import ConfigDict

from langchain_retrying._drop_in.wrapping import wrap_inside
from langchain_retrying._policy.policy import DEFAULT_POLICY, RetryPolicy
from langchain_retrying._policy.wrappers import WRAPPER, is_wrapper

if TYPE_CHECKING:
    from langchain_core.runnables import configurable
    from typing_extensions import Self

# What a pydantic instance consists of: https://docs.pydantic.dev/latest/api/base_model/
_STATE = (
    "__dict__",
    "__pydantic_fields_set__",
    "__pydantic_extra__",
    "__pydantic_private__",
)
_UNSET = object()
_SLOTS = ("_Facade__inner_model", "_Facade__retry_policy")


Method = TypeVar("Method", bound=Callable[..., Any])


class _Hook(property):
    """A method that is found before one of its name patched onto the inner model.

    The wrapper shares the inner model's attributes, and an attribute of an instance hides a plain
    method of its class, but not a data descriptor; the patched method is called as part of an
    attempt. (pydantic takes properties for what they are, and would make another descriptor a
    private attribute.)
    """

    fget: Callable[..., Any]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.fget if instance is None else MethodType(self.fget, instance)


def hook(method: Method) -> Method:
    """Make a method a generation hook of the wrapper."""
    # LangChain inspects the signature at each call; one that is there already saves 25 µs.
    method.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # PEP 362
    descriptor: Any = _Hook(method)
    return descriptor  # type: ignore[no-any-return]  # on an instance it is the method


def _made_by(name: str) -> Any:
    """A class method of the inner class's that makes a model; what it makes is wrapped."""

    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if WRAPPER not in vars(cls):
            return getattr(super(Facade, cls), name)(*args, **kwargs)
        made = getattr(_inner_class(cls), name)(*args, **kwargs)
        return made if is_wrapper(made) else cls._facing(made, DEFAULT_POLICY)

    return classmethod(make)


class Facade(BaseChatModel):  # noqa: PLW1641 -- derived classes have the inner class's hash
    """A chat model that is another one, but for what subclasses override."""

    # The schema of this class is of no use, and takes milliseconds to build.
    model_config = ConfigDict(defer_build=True)

    # In slots, under mangled names: nothing of the wrapper's shadows a field of the inner model.
    __slots__ = ("__inner_model", "__retry_policy")

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Derive the class for the inner model's, and make an instance of that."""
        first = args[0] if args else kwargs.get("inner_model")
        if WRAPPER in vars(cls) and not issubclass(type(first), BaseChatModel):
            # `type(model)(**fields)` of a wrapped model, as code may write that knows the bare one.
            return cls._facing(_inner_class(cls)(*args, **kwargs), DEFAULT_POLICY)
        return _wrap(cls, *args, **kwargs)  # type: ignore[no-any-return]  # or what is around one

    @classmethod
    def _facing(cls, inner_model: BaseChatModel, policy: RetryPolicy) -> Self:
        base = cls._base()
        if is_wrapper(inner_model):  # around another, retries would multiply
            wrapper: Any = inner_model
            inner_model = wrapper.inner_model
            if issubclass(wrapper._base(), base):
                base = wrapper._base()
        facade: Self = object.__new__(_derived_class(base, type(inner_model)))
        for name, value in zip(_SLOTS, (inner_model, policy), strict=True):
            object.__setattr__(facade, name, value)
        facade._share_state(inner_model)
        return facade

    def _share_state(self, other: BaseChatModel) -> None:
        for name in _STATE:
            value = getattr(other, name, _UNSET)  # of a model that was made without validation
            if value is not _UNSET:
                object.__setattr__(self, name, value)

    @property
    def inner_model(self) -> BaseChatModel:
        """The wrapped model: the very object given, never changed by the wrapper."""
        return self.__inner_model  # type: ignore[attr-defined,no-any-return]  # a slot

    @property
    def retry_policy(self) -> RetryPolicy:
        """The policy given."""
        return self.__retry_policy  # type: ignore[attr-defined,no-any-return]  # a slot

    def _refacing(self, inner_model: BaseChatModel) -> Self:
        """The same wrapper around another inner model."""
        return type(self)._facing(inner_model, self.retry_policy)

    def _twin(self, **state: Any) -> Self:
        """A wrapper like this one, for one call, in which some attributes differ."""
        twin: Self = object.__new__(type(self))
        for name in _SLOTS:
            object.__setattr__(twin, name, getattr(self, name))
        twin._share_state(self)
        object.__setattr__(twin, "__dict__", {**self.__dict__, **state})
        return twin

    @classmethod
    def _optional_hooks(cls) -> dict[str, Any]:
        """Hooks that LangChain looks for, and that a wrapper has only if the inner model has."""
        return {}

    # --- state: read where it is shared, written through ---

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("inner_model", "retry_policy"):
            raise AttributeError(f"{name} can't be set: wrap the model again instead")
        setattr(self.inner_model, name, value)
        self._share_state(self.inner_model)  # a validated assignment may have replaced it

    def __delattr__(self, name: str) -> None:
        delattr(self.inner_model, name)

    def __del__(self) -> None:
        """Nothing: what the inner class does here is for the inner model's own end."""

    # --- made of fields, by pydantic ---

    model_construct = _made_by("model_construct")
    model_validate = _made_by("model_validate")
    model_validate_json = _made_by("model_validate_json")
    model_validate_strings = _made_by("model_validate_strings")

    # --- copies ---

    def __copy__(self) -> Self:
        return self._refacing(copy.copy(self.inner_model))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self._refacing(copy.deepcopy(self.inner_model, memo))

    def copy(self, **kwargs: Any) -> Self:  # pydantic's, deprecated
        """As the inner model's; pydantic's own would make a wrapper of nothing."""
        return self._refacing(self.inner_model.copy(**kwargs))

    def __reduce__(self) -> tuple[Any, ...]:
        return _facing, (self._base(), self.inner_model, self.retry_policy)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    @classmethod
    def _base(cls) -> type[Self]:
        """The class of wrappers that a user names, from which this one may be derived."""
        return getattr(cls, WRAPPER, cls)

    # --- identity ---

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return self.inner_model._identifying_params

    @property
    def _serialized(self) -> dict[str, Any]:  # cached by the inner model
        return self.inner_model._serialized

    @property
    def _llm_type(self) -> str:
        return self.inner_model._llm_type

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Facade) and self.retry_policy != other.retry_policy:
            return False
        return super().__eq__(other)

    def __repr__(self) -> str:
        return f"{self._base().__name__}({self.inner_model!r}, {self.retry_policy!r})"

    __str__ = __repr__

    def configurable_fields(
        self, **kwargs: Any
    ) -> configurable.RunnableConfigurableFields[Any, Any]:
        """As for the inner model; what is configured at run time is wrapped as this is."""
        from langchain_retrying._drop_in.configurable import (  # noqa: PLC0415 -- slow, and seldom needed
            RunnableConfigurableFields,
        )

        checked = self.inner_model.configurable_fields(**kwargs)
        return RunnableConfigurableFields(default=self, fields=checked.fields)  # type: ignore[attr-defined]  # RunnableConfigurableFields, declared as its base


def _wrap(cls: Any, inner_model: Any = None, policy: Any = None, *args: Any, **kwargs: Any) -> Any:
    if args or kwargs:
        given = ", ".join(kwargs) or "a third argument"
        raise TypeError(
            f"{cls.__name__} takes a model and a policy, not {given}: "
            f"write {cls.__name__}(model, RetryPolicy(...))"
        )
    policy = DEFAULT_POLICY if policy is None else policy
    if not isinstance(policy, RetryPolicy):
        raise TypeError(
            f"policy must be a RetryPolicy, not {type(policy).__name__}: "
            f"write {cls.__name__}(model, RetryPolicy(max_retries=2))"
        )
    # Of the type: pydantic 2.7's `isinstance` asks a configurable model for attributes.
    if issubclass(type(inner_model), BaseChatModel):
        return cls._facing(inner_model, policy)
    return wrap_inside(inner_model, lambda model: cls._facing(model, policy), cls.__name__)


class _Subclassing(type):
    """Makes of a subclass of `type(model)`, where `model` is wrapped, one of the inner class.

    So it is what it would be without the wrapper, its methods are below the retries as those of
    the inner class are, and it can be pickled; what is made by calling it is wrapped.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any
    ) -> Any:
        if WRAPPER in namespace:
            return super().__new__(mcs, name, bases, namespace, **kwargs)
        wrapping = [vars(base)[WRAPPER] for base in bases if WRAPPER in vars(base)]
        bases = tuple(_inner_class(base) if WRAPPER in vars(base) else base for base in bases)
        cls = super().__new__(mcs, name, bases, namespace, **kwargs)
        if wrapping:
            setattr(cls, _MAKES, wrapping[0])
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        return made if is_wrapper(made) else getattr(cls, _MAKES)._facing(made, DEFAULT_POLICY)


_MAKES = "__langchain_retrying_makes__"  # the class of wrappers that a subclass makes


@functools.cache
def _metaclass(inner: type) -> Any:
    """The metaclass of wrappers of models whose class has the metaclass `inner`."""
    if issubclass(inner, _Subclassing):
        return inner
    metaclass = type(inner.__name__, (_Subclassing, inner), {})
    copyreg.pickle(metaclass, _reduced)
    return metaclass


def _reduced(cls: type) -> str | tuple[Any, ...]:
    """How pickle keeps a class: one of wrappers has no place of its own, so it is derived again."""
    if WRAPPER in vars(cls):
        return _derived_class, cls.__bases__
    return cls.__qualname__


def _inner_class(derived: type) -> Any:
    return derived.__bases__[1]


# Weak, so that classes made inside functions are freed with their last wrapper.
_derived_classes: WeakValueDictionary[tuple[type, type], Any] = WeakValueDictionary()
_deriving = threading.Lock()


def _derived_class(base: type[Facade], inner_class: type[BaseChatModel]) -> Any:
    """The one class of wrappers of class `base` around models of class `inner_class`."""
    derived = _derived_classes.get((base, inner_class))
    if derived is None:
        with _deriving:
            derived = _derived_classes.get((base, inner_class))
            if derived is None:
                derived = _derive(base, inner_class)
                _derived_classes[base, inner_class] = derived
    return derived


def _derive(base: type[Facade], inner_class: type[BaseChatModel]) -> Any:
    namespace: dict[str, Any] = {
        WRAPPER: base,
        "__module__": inner_class.__module__,
        "__qualname__": inner_class.__qualname__,
        "__doc__": inner_class.__doc__,
        "__hash__": inner_class.__hash__,
        "model_config": {"defer_build": inner_class.model_config.get("defer_build", False)},
    }
    # LangChain asks the class whether a model can stream, and in which ways.
    if inner_class._stream is BaseChatModel._stream:
        namespace["_stream"] = BaseChatModel._stream
        if inner_class._astream is BaseChatModel._astream:
            namespace["_astream"] = BaseChatModel._astream
    namespace |= {
        name: optional
        for name, optional in base._optional_hooks().items()
        if getattr(inner_class, name, None) is not None
    }
    if inner_class.model_config.get("validate_assignment"):
        namespace["__getattribute__"] = _get_from_replaced_state
    inner_metaclass: Any = type(inner_class)
    metaclass = _metaclass(inner_metaclass)
    try:
        return metaclass(inner_class.__name__, (base, inner_class), namespace)
    except TypeError as error:
        raise TypeError(f"{inner_class.__name__} can't be wrapped: {error}") from error


def _get_from_replaced_state(facade: Any, name: str) -> Any:
    """Look an attribute up where pydantic replaces the whole state with each assignment."""
    inner_model = object.__getattribute__(facade, _SLOTS[0])
    state = object.__getattribute__(inner_model, "__dict__")
    if object.__getattribute__(facade, "__dict__") is not state:
        Facade._share_state(facade, inner_model)
    return object.__getattribute__(facade, name)


def _facing(base: type[Facade], inner_model: BaseChatModel, policy: RetryPolicy) -> Facade:
    return base._facing(inner_model, policy)
