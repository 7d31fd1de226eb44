"""`RaiseOutputBudget`: the remedy for replies whose output budget was spent before they began."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_retrying._errors import EmptyCompletionError
from langchain_retrying._policy.checks import check_int, check_kind
from langchain_retrying._policy.remedies import Request

# What integrations call it, at a call and as a field of the model; Ollama's is the last.
_NAME = re.compile("max_?(completion_?|output_?|new_?)?tokens|num_predict", re.IGNORECASE)
_OPENAI = "max_completion_tokens"  # the alias of its field `max_tokens`
_OLLAMA = "num_predict"
_MOST = 1000
_LEAST = 1024
"""Tokens to ask for where no budget is known: some servers report a handful of those used."""


@dataclass(frozen=True)
class RaiseOutputBudget:
    """The remedy that allows more output tokens: `factor` times as many as the last reply had.

    That is the budget of the request or of the model, or the tokens that the reply has used, if it
    tells of more. What a reply was allowed stays allowed for the rest of the call, whatever becomes
    of the attempts after it. Where no budget is known, at least 1,024 tokens are asked for; where
    the reply does not tell what it used, the ceiling. As any remedy it may find nothing to try, and
    then the call ends: if the ceiling was not enough, or nothing is known that could be raised.

    Args:
        parameter: Name of the call argument. None: the one that is in use, or that the inner
            model's integration has, such as `max_tokens`, `max_output_tokens`, `num_predict`.
        factor: By which the budget grows, above 1 and at most 1000.
        ceiling: The most to ask for, in tokens, at least 1. None: `max_output_tokens` of the
            inner model's `profile`; without a profile there is no ceiling.

    Raises:
        TypeError: `parameter` is no text, or `ceiling` no int.
        ValueError: A number is out of its bounds.

    """

    parameter: str | None = None
    factor: float = 2.0
    ceiling: int | None = None

    def __post_init__(self) -> None:
        check_kind("parameter must be a name or None", self.parameter, str, type(None))
        if not isinstance(self.factor, (int, float)) or not 1 < self.factor <= _MOST:
            raise ValueError(f"factor must be above 1 and at most {_MOST}, not {self.factor!r:.40}")
        if self.ceiling is not None:
            check_int("ceiling", self.ceiling, at_least=1)

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request | None:
        """The request with a larger budget, or None."""
        given_as = (name for name, value in _budgets(request) if value is not None)
        name = self.parameter or next(filter(_NAME.fullmatch, given_as), "max_tokens")
        given, used = _given(request, name), error.rejected[-1].output_tokens
        last = request.last or request
        if last.model is request.model:
            given = max(given, _given(last, name))
        else:
            used = 0  # a fallback's
        budget = max(given, used) * self.factor or math.inf
        if not given:
            budget = max(budget, _LEAST)
        profile = getattr(request.model, "profile", None) or {}
        budget = min(budget, self.ceiling or profile.get("max_output_tokens") or math.inf)
        if not given < budget < math.inf:
            return None
        tokens = math.ceil(budget)

        def kept(original: Request) -> Request:
            is_its_own = original.model is request.model  # and not a fallback's
            return _with_budget(original, name, tokens) if is_its_own else original

        return replace(_with_budget(request, name, tokens), kept=kept)


def _budgets(request: Request) -> Iterator[tuple[str, Any]]:
    """What may be a budget, after its name at a call, in the order in which they hold."""
    options, model = request.kwargs.get("options"), request.model
    yield from request.kwargs.items()
    yield from options.items() if isinstance(options, Mapping) else ()  # Ollama's
    yield from (getattr(model, "model_kwargs", None) or {}).items()
    for name, field in type(model).model_fields.items():
        if _NAME.fullmatch(name):
            # In ChatOpenAI only the alias wins over the field, whichever API it speaks.
            yield _OPENAI if field.alias == _OPENAI else name, getattr(model, name) or 0


def _given(request: Request, name: str) -> int:
    """The budget of the request or the model, in tokens; 0 if there is none."""
    budgets = (value for key, value in _budgets(request) if key == name)
    # To Ollama -1 is no bound.
    return next((value for value in budgets if isinstance(value, int) and value > 0), 0)


def _with_budget(request: Request, name: str, budget: int) -> Request:
    model, options = request.model, request.kwargs.get("options")
    if name != _OLLAMA or name not in type(model).model_fields:
        return replace(request, kwargs={**request.kwargs, name: budget})
    if options is None:  # given at a call they would replace all those of the model
        return replace(request, model=model.model_copy(update={name: budget}))
    return replace(request, kwargs={**request.kwargs, "options": {**options, name: budget}})
