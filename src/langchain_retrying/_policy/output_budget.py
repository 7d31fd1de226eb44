"""`RaiseOutputBudget`: the remedy for replies whose output budget was spent before they began."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_retrying._errors import EmptyCompletionError
from langchain_retrying._policy.checks import check_int
from langchain_retrying._policy.remedies import Request

# What integrations call it, at a call and as a field of the model.
_NAMES = (
    "max_tokens",  # Anthropic, Mistral, Groq, DeepSeek ...
    "max_completion_tokens",  # OpenAI
    "max_output_tokens",  # Gemini
    "max_new_tokens",  # Hugging Face
    "num_predict",  # Ollama
)
_OPENAI = "max_completion_tokens"  # the alias of its field `max_tokens`
_OLLAMA = "num_predict"
_MOST = 1000
_LEAST = 1024
"""Tokens to ask for where no budget is known: some servers report a handful of those used."""
_BEDROCK = "maxTokens"  # a field `max_tokens`, but this at a call


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
        TypeError: `parameter` is no text, or a number is none.
        ValueError: A number is out of its bounds.

    """

    parameter: str | None = None
    factor: float = 2.0
    ceiling: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.parameter, (str, type(None))):
            raise TypeError(f"parameter must be a name or None, not {self.parameter!r:.40}")
        if not isinstance(self.factor, (int, float)):
            raise TypeError(f"factor must be a number, not {type(self.factor).__name__}")
        if not 1 < self.factor <= _MOST:
            raise ValueError(f"factor must be above 1 and at most {_MOST}, not {self.factor}")
        if self.ceiling is not None:
            check_int("ceiling", self.ceiling, at_least=1)

    def __call__(self, request: Request, error: EmptyCompletionError) -> Request | None:
        """The request with a larger budget, or None."""
        name = self.parameter or _name(request)
        given, used = _given(request, name), error.rejected[-1].output_tokens
        if request.last is not None:
            if request.last.model is request.model:
                given = max(given, _given(request.last, name))
            else:
                used = 0  # a fallback's
        ceiling = self.ceiling or _ceiling_of(request)
        budget = max(given, used) * self.factor if given or used else None
        if budget is not None and not given:
            budget = max(budget, _LEAST)
        if ceiling is not None:
            budget = min(budget or ceiling, ceiling)
        if budget is None or budget <= given:
            return None
        raised = _with_budget(request, name, math.ceil(budget))

        def kept(original: Request) -> Request:
            if original.model is not request.model:  # it was for a fallback
                return original
            kwargs = {**original.kwargs, **_changed(raised.kwargs, request.kwargs)}
            return replace(original, model=raised.model, kwargs=kwargs)

        return replace(raised, kept=kept)


def _changed(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in after.items() if value is not before.get(key)}


def _name(request: Request) -> str:
    for given in (request.kwargs, _model_kwargs(request)):
        for name in (*_NAMES, _BEDROCK):
            if given.get(name) is not None:
                return name
    if request.model._llm_type == "amazon_bedrock_converse_chat":
        return _BEDROCK
    for name, field in type(request.model).model_fields.items():
        if name in _NAMES:
            # In ChatOpenAI only the alias wins over the field, whichever API it speaks.
            return field.alias if field.alias == _OPENAI else name
    return _NAMES[0]


def _given(request: Request, name: str) -> int:
    """The budget of the request or the model, in tokens; 0 if there is none."""
    field = "max_tokens" if name in (_BEDROCK, _OPENAI) else name
    options = _options(request) if name == _OLLAMA else None
    for budget in (
        request.kwargs.get(name),
        (options or {}).get(name),
        _model_kwargs(request).get(name),
        getattr(request.model, field, None),
    ):
        if isinstance(budget, int) and budget > 0:  # to Ollama -1 is no bound
            return budget
    return 0


def _model_kwargs(request: Request) -> Mapping[str, Any]:
    """Where many integrations put arguments that they have no field for."""
    kwargs = getattr(request.model, "model_kwargs", None)
    return kwargs if isinstance(kwargs, Mapping) else {}


def _ceiling_of(request: Request) -> int | None:
    profile: Any = getattr(request.model, "profile", None) or {}
    ceiling = profile.get("max_output_tokens")
    return ceiling if isinstance(ceiling, int) and ceiling > 0 else None


def _with_budget(request: Request, name: str, budget: int) -> Request:
    if name == _OLLAMA and _OLLAMA in type(request.model).model_fields:
        options = _options(request)
        if options is None:  # given at a call they would replace all those of the model
            return replace(request, model=request.model.model_copy(update={name: budget}))
        return replace(request, kwargs={**request.kwargs, "options": {**options, name: budget}})
    return replace(request, kwargs={**request.kwargs, name: budget})


def _options(request: Request) -> Mapping[str, Any] | None:
    options = request.kwargs.get("options")
    return options if isinstance(options, Mapping) else None
