"""What makes the wrapper stand in for the inner model: its state, its copies, its identity.

A wrapper is an instance of a class derived from the wrapper's class and the inner model's. It
shares the inner model's state, so all code of the inner class that is not a generation hook runs
on the wrapper as it runs on the inner model: whatever that class knows about itself, binds or
parses, the wrapper does too.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult

from langchain_retrying._drop_in.cache import AnswerCache, effective_cache
from langchain_retrying._drop_in.classes import CACHING, derived_class, inner_class_of, share_state
from langchain_retrying._drop_in.wrapping import wrap_inside
from langchain_retrying._policy.policy import DEFAULT_POLICY, RetryPolicy
from langchain_retrying._policy.tool_choice import forced_tools
from langchain_retrying._policy.wrappers import WRAPPER, is_wrapper

Method = TypeVar("Method", bound=Callable[..., Any])


class _Hook(property):
    """A method that is found before one of its name patched onto the inner model.

    The wrapper shares the inner model's attributes, and an attribute of an instance hides a plain
    method of its class, but not a data descriptor; the patched method is called as part of an
    attempt. (pydantic takes properties for what they are, and would make another descriptor a
    private attribute.)
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        super().__init__(partial(MethodType, method))  # in C: it is looked up in every call
        self._method = method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # of the class
        return self._method(*args, **kwargs)


def hook(method: Method) -> Method:
    """Make a method a generation hook of the wrapper."""
    # LangChain inspects the signature at each call; one that is there already saves 25 µs.
    method.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # PEP 362
    return cast("Method", _Hook(method))  # on an instance it is the method


# The schema of this class is of no use, and takes milliseconds to build.
class Facade(BaseChatModel, defer_build=True):  # noqa: PLW1641 -- derived classes have a hash
    """A chat model that is another one, but for what subclasses override."""

    # Apart from the state that is shared. No other name may shadow a field of the inner model.
    __slots__ = ("__caching", "inner_model", "retry_policy")

    if TYPE_CHECKING:
        inner_model: BaseChatModel
        """The wrapped model: the very object given, never changed by the wrapper."""
        retry_policy: RetryPolicy
        """The policy given."""
        __caching: Any
        """The same wrapper, but that it caches answers only; None until a cache is in use."""

        @property
        def _llm_type(self) -> str: ...  # the inner class's

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Derive the class for the inner model's, and make an instance of that."""
        first = args[0] if args else kwargs.get("inner_model")
        if WRAPPER in vars(cls) and not issubclass(type(first), BaseChatModel):
            # `type(model)(**fields)` of a wrapped model, as code may write that knows the bare one.
            args, kwargs = (inner_class_of(cls)(*args, **kwargs),), {}
        return _wrap(_base(cls), *args, **kwargs)

    # --- state: read where it is shared, written through ---

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("inner_model", "retry_policy"):
            raise AttributeError(f"{name} can't be set: wrap the model again instead")
        setattr(self.inner_model, name, value)
        share_state(self, self.inner_model)  # a validated assignment may have replaced it

    def __del__(self) -> None:
        """Nothing: what the inner class does here is for the inner model's own end."""

    # --- copies ---

    def __copy__(self) -> Any:
        return wrap_alike(self, copy.copy(self.inner_model))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
        return wrap_alike(self, copy.deepcopy(self.inner_model, memo))

    def copy(self, **kwargs: Any) -> Any:  # pydantic's, deprecated
        """As the inner model's; pydantic's own would make a wrapper of nothing."""
        return wrap_alike(self, self.inner_model.copy(**kwargs))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _base(type(self)), (self.inner_model, self.retry_policy)

    # --- identity ---

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return self.inner_model._identifying_params

    @property
    def _serialized(self) -> dict[str, Any]:  # cached by the inner model
        return self.inner_model._serialized

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Facade) and self.retry_policy != other.retry_policy:
            return False
        return super().__eq__(other)

    def __repr__(self) -> str:
        return f"{_base(type(self)).__name__}({self.inner_model!r}, {self.retry_policy!r})"

    __str__ = __repr__

    # --- what LangChain puts around a call ---

    def _generate_with_cache(self, *args: Any, **kwargs: Any) -> ChatResult:
        model = self.__caching_answers(kwargs)
        return super(Facade, model)._generate_with_cache(*args, **kwargs)

    async def _agenerate_with_cache(self, *args: Any, **kwargs: Any) -> ChatResult:
        model = self.__caching_answers(kwargs)
        return await super(Facade, model)._agenerate_with_cache(*args, **kwargs)

    def __caching_answers(self, kwargs: Mapping[str, Any]) -> Any:
        """The wrapper itself, or if a cache is in use one that caches answers only."""
        cache = effective_cache(self.cache)
        if cache is None:
            return self
        text_counts = not (self.retry_policy.require_tool_call and forced_tools(kwargs))
        caching = self.__caching
        if caching is None or not caching.cache.is_view_of(cache, text_counts):
            cls = getattr(type(self), CACHING)
            caching = _new_wrapper(cls, self.inner_model, self.retry_policy)
            object.__setattr__(caching, "cache", AnswerCache(cache, text_counts))
            object.__setattr__(self, "_Facade__caching", caching)
        return caching

    def configurable_fields(self, **kwargs: Any) -> Any:
        """As for the inner model; what is configured at run time is wrapped as this is."""
        from langchain_retrying._drop_in import configurable  # noqa: PLC0415 -- slow, seldom needed

        self.inner_model.configurable_fields(**kwargs)  # checks them
        return configurable.RunnableConfigurableFields(default=self, fields=kwargs)


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
    return wrap_inside(inner_model, lambda model: _wrap_model(cls, model, policy))


def _wrap_model(base: Any, inner_model: Any, policy: RetryPolicy) -> Any:
    if is_wrapper(inner_model):  # around another, retries would multiply
        if issubclass(type(inner_model), base):
            base = _base(type(inner_model))
        inner_model = inner_model.inner_model
    return _new_wrapper(derived_class(base, type(inner_model)), inner_model, policy)


def wrap_alike(facade: Any, inner_model: Any) -> Any:
    """Wrap another model as one is wrapped."""
    return _wrap_model(_base(type(facade)), inner_model, facade.retry_policy)


def _base(cls: type) -> Any:
    """The class of wrappers that a user names, from which this one may be derived."""
    return getattr(cls, WRAPPER, cls)


def _new_wrapper(cls: Any, inner_model: BaseChatModel, policy: RetryPolicy) -> Any:
    facade = object.__new__(cls)
    object.__setattr__(facade, "inner_model", inner_model)
    object.__setattr__(facade, "retry_policy", policy)
    object.__setattr__(facade, "_Facade__caching", None)
    share_state(facade, inner_model)
    return facade
