"""`RaiseOutputBudget`: which parameter, from which budget, up to where; on the wire, too."""

from __future__ import annotations

import functools
import json
import operator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_openai.chat_models.base import BaseChatOpenAI
from tenacity import retry_if_exception_type

from conftest import ask
from langchain_retrying import (
    EmptyCompletionError,
    FallbackModel,
    Nudge,
    RaiseOutputBudget,
    RejectedAttempt,
    ReplyKind,
    Request,
    RetryingChatModel,
    RetryPolicy,
    WithParams,
)
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import build
from wire.replies import encode
from wire.turns import BLANK, GOOD, Turn

CASES = {
    case["id"]: case
    for case in json.loads(
        Path(__file__).parents[1].joinpath("wire").joinpath("cases.json").read_text("utf-8")
    )
}


def rejected(*kinds: ReplyKind, output_tokens: int = 0) -> EmptyCompletionError:
    return EmptyCompletionError(
        [RejectedAttempt(kind, "length", 0.0, 10, output_tokens) for kind in kinds],
        elapsed_seconds=0.0,
        last_message=AIMessage(""),
    )


CUT = ReplyKind.TRUNCATED


def raised(remedy, *, used=0, sent=None, model=None, **kwargs: Any) -> dict[str, Any] | None:
    """The call arguments of the next request, after a last one that had `sent`; None if none."""
    model = model or ScriptedChatModel()
    last = Request([], kwargs if sent is None else {**kwargs, **sent}, model)
    request = Request([], kwargs, model, last)
    changed = remedy(request, rejected(CUT, output_tokens=used))
    return None if changed is None else dict(changed.kwargs)


class Budgeted(ScriptedChatModel):
    max_output_tokens: int | None = None


@pytest.mark.parametrize(
    ("remedy", "given", "expected"),
    [
        # From the request, under the name it has there.
        (RaiseOutputBudget(), {"max_tokens": 100}, {"max_tokens": 200}),
        (
            RaiseOutputBudget(),
            {"max_completion_tokens": 100, "n": 1},
            {"max_completion_tokens": 200, "n": 1},
        ),
        (
            RaiseOutputBudget(),
            {"max_tokens": None, "maxTokens": 5},
            {"max_tokens": None, "maxTokens": 10},
        ),
        (RaiseOutputBudget("limit"), {"limit": 100}, {"limit": 200}),
        (RaiseOutputBudget(factor=1.5), {"max_tokens": 101}, {"max_tokens": 152}),
        # Each time as many again as the last attempt had.
        (
            RaiseOutputBudget(),
            {"max_tokens": 100, "sent": {"max_tokens": 400}},
            {"max_tokens": 800},
        ),
        # From what was used, if that is more, or nothing else is known.
        (RaiseOutputBudget(), {"max_tokens": 100, "used": 130}, {"max_tokens": 260}),
        (RaiseOutputBudget(), {"used": 1300}, {"max_tokens": 2600}),
        # A handful of reported tokens is no budget.
        (RaiseOutputBudget(), {"used": 5}, {"max_tokens": 1024}),
        (RaiseOutputBudget(ceiling=150), {"used": 5}, {"max_tokens": 150}),
        # Up to the ceiling, and then no more.
        (RaiseOutputBudget(ceiling=150), {"max_tokens": 100}, {"max_tokens": 150}),
        (RaiseOutputBudget(ceiling=150), {"max_tokens": 100, "sent": {"max_tokens": 150}}, None),
        (RaiseOutputBudget(ceiling=150), {"max_tokens": 100, "used": 140}, {"max_tokens": 150}),
        (RaiseOutputBudget(factor=1000, ceiling=150), {"max_tokens": 100}, {"max_tokens": 150}),
        (RaiseOutputBudget(ceiling=100), {"max_tokens": 100}, None),
        (RaiseOutputBudget(ceiling=1), {"max_tokens": 100}, None),
        # Nothing is known but the ceiling.
        (RaiseOutputBudget(ceiling=150), {}, {"max_tokens": 150}),
        (RaiseOutputBudget(ceiling=150), {"sent": {"max_tokens": 150}}, None),
        (RaiseOutputBudget(), {}, None),
    ],
    ids=str,
)
def test_the_next_budget(remedy, given, expected):
    assert raised(remedy, **given) == expected


def test_the_budget_and_its_name_may_be_the_models():
    assert raised(RaiseOutputBudget(), model=Budgeted(max_output_tokens=8)) == {
        "max_output_tokens": 16
    }
    assert raised(RaiseOutputBudget("max_output_tokens"), model=Budgeted(max_output_tokens=8)) == {
        "max_output_tokens": 16
    }
    assert raised(RaiseOutputBudget(), used=800, model=Budgeted()) == {"max_output_tokens": 1600}


def test_the_ceiling_may_be_the_profiles():
    if "profile" not in Budgeted.model_fields:
        pytest.skip("this langchain-core has no profiles")
    model = Budgeted(max_output_tokens=8, profile={"max_output_tokens": 10})
    assert raised(RaiseOutputBudget(), model=model) == {"max_output_tokens": 10}
    assert raised(RaiseOutputBudget(ceiling=12), model=model) == {"max_output_tokens": 12}
    sent = {"max_output_tokens": 10}
    assert raised(RaiseOutputBudget(), sent=sent, model=model) is None


def test_on_whatever_rung_it_stands_it_starts_from_the_budget_there_is(way):
    cut = AIMessage("", response_metadata={"finish_reason": "length"})
    model = ScriptedChatModel([cut] * 4)
    ladder = [Nudge(), RaiseOutputBudget(ceiling=300)]
    policy = RetryPolicy(max_retries=9, wait=None, remedies={CUT: ladder})
    ask(way, RetryingChatModel(model, policy), max_tokens=100)
    assert [request.kwargs["max_tokens"] for request in model.requests] == [100, 100, 200, 300]


CUT_OFF = AIMessage("", response_metadata={"finish_reason": "length"})


class RefusedError(Exception):
    status_code = 400


@pytest.mark.parametrize(
    ("script", "rung", "budgets"),
    [
        # What brought no reply raises nothing.
        ([CUT_OFF, TimeoutError(), CUT_OFF], RaiseOutputBudget(), [100, 200, 200, 400]),
        ([TimeoutError(), CUT_OFF, CUT_OFF], RaiseOutputBudget(), [100, 100, 200, 400]),
        ([CUT_OFF, RefusedError(), CUT_OFF], (RaiseOutputBudget(), Nudge()), [100, 200, 200, 400]),
        # Nor does it fall back to the old one where another ladder takes over.
        ([CUT_OFF, "", CUT_OFF, " "], RaiseOutputBudget(), [100, 200, 200, 400, 400]),
        ([CUT_OFF, "", TimeoutError(), " "], RaiseOutputBudget(), [100, 200, 200, 200, 200]),
        # Nor is it the budget of a remedy before it.
        ([CUT_OFF] * 2, (WithParams(max_tokens=300), RaiseOutputBudget()), [100, 600, 1200]),
        ([CUT_OFF] * 2, [WithParams(max_tokens=300), RaiseOutputBudget()], [100, 300, 600]),
    ],
)
def test_it_doubles_what_the_last_cut_off_reply_had(way, script, rung, budgets):
    model = ScriptedChatModel([*script, "Hello."])
    ladder = rung if isinstance(rung, list) else [rung]
    policy = RetryPolicy(
        9,
        wait=None,
        retry=retry_if_exception_type(TimeoutError),
        remedies={CUT: ladder, ReplyKind.BLANK: [Nudge()]},
    )
    assert ask(way, RetryingChatModel(model, policy), max_tokens=100).content == "Hello."
    assert [request.kwargs["max_tokens"] for request in model.requests] == budgets


def test_with_a_ceiling_errors_in_between_use_none_of_it_up(way):
    model = ScriptedChatModel([CUT_OFF, TimeoutError(), TimeoutError(), CUT_OFF, "Hello."])
    retry = retry_if_exception_type(TimeoutError)
    remedies = {CUT: [RaiseOutputBudget(ceiling=400)]}
    policy = RetryPolicy(9, wait=None, retry=retry, remedies=remedies)
    assert ask(way, RetryingChatModel(model, policy), max_tokens=100).content == "Hello."


def cut_off(tokens: int) -> AIMessage:
    usage = {"input_tokens": 1, "output_tokens": tokens, "total_tokens": tokens + 1}
    return CUT_OFF.model_copy(update={"usage_metadata": usage})


def test_after_a_fallback_it_starts_from_the_primarys_own_budget(way):
    fallback = ScriptedChatModel([cut_off(5000)])
    ladder = [FallbackModel(fallback.bind(max_tokens=5000)), RaiseOutputBudget()]
    policy = RetryPolicy(9, wait=None, remedies={CUT: ladder})
    model = ScriptedChatModel([cut_off(100), "Hello."])
    ask(way, RetryingChatModel(model, policy), max_tokens=100)
    assert [request.kwargs["max_tokens"] for request in model.requests] == [100, 200]
    # Where it has none that is known, a fallback's tokens don't tell of it.
    model = ScriptedChatModel([cut_off(100), "never"])
    fallback.requests.clear()
    ask(way, RetryingChatModel(model, policy))
    assert len(model.requests) == 1


def test_a_fallbacks_raised_budget_is_not_the_primarys(way):
    fallback = ScriptedChatModel([cut_off(300)])
    bound = FallbackModel(fallback.bind(max_tokens=5000))
    ladder = [(bound, RaiseOutputBudget()), WithParams(a=1)]
    policy = RetryPolicy(9, wait=None, remedies={CUT: ladder})
    model = ScriptedChatModel([cut_off(100), "Hello."])
    ask(way, RetryingChatModel(model, policy), max_tokens=100)
    assert fallback.requests[0].kwargs["max_tokens"] == 10000
    assert [request.kwargs["max_tokens"] for request in model.requests] == [100, 100]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"factor": 1}, ValueError, "factor must be above 1 and at most 1000, not 1"),
        ({"factor": float("nan")}, ValueError, "factor must be above 1 and at most 1000, not nan"),
        ({"factor": float("inf")}, ValueError, "factor must be above 1 and at most 1000, not inf"),
        ({"factor": "2"}, ValueError, "factor must be above 1 and at most 1000, not '2'"),
        ({"ceiling": 1.5}, TypeError, "ceiling must be an int, not float"),
        ({"ceiling": 0}, ValueError, "ceiling must be at least 1, not 0"),
        ({"parameter": 3}, TypeError, "parameter must be a name or None, not int"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        RaiseOutputBudget(**arguments)


# The case of a cut-off reply, the budget the model has, and where it stands in the request.
ON_THE_WIRE = {
    "openai-chat-length-zero-completion": ({"max_tokens": 50}, ["max_completion_tokens"]),
    "openai-stream-length-reasoning-only": ({"max_tokens": 50}, ["max_completion_tokens"]),
    "responses-incomplete-output-empty": ({"max_tokens": 50}, ["max_output_tokens"]),
    "anthropic-thinking-only-max-tokens": ({}, ["max_tokens"]),
    "gemini-max-tokens-empty-text": (
        {"max_output_tokens": 50},
        ["generationConfig", "maxOutputTokens"],
    ),
    "ollama-thinking-only-length": (
        {"num_predict": 50, "temperature": 0.5},
        ["options", "num_predict"],
    ),
    "bedrock-max-tokens-empty": ({"max_tokens": 50}, ["inferenceConfig", "maxTokens"]),
}


@pytest.mark.parametrize("case_id", ON_THE_WIRE)
def test_the_raised_budget_reaches_the_provider(server, case_id):
    kwargs, path = ON_THE_WIRE[case_id]
    case = CASES[case_id]
    api, mode, client = case["api"], case["mode"], case["client"]
    model = build({**client, "kwargs": {**client.get("kwargs", {}), **kwargs}}, server.url)
    server.play(encode(api, mode, case["body"]), GOOD)
    policy = RetryPolicy(remedies={ReplyKind.TRUNCATED: [RaiseOutputBudget()]})
    ask(mode, RetryingChatModel(model, policy))
    first, second = (request["json"] for request in server.requests)
    before, after = (
        functools.reduce(operator.getitem, path[:-1], body).pop(path[-1])
        for body in (first, second)
    )
    assert after >= 2 * before > 0
    assert second == first  # but for the budget


def test_a_raised_budget_of_ollamas_stays_when_a_blank_follows(server):
    case = CASES["ollama-thinking-only-length"]
    model = build({**case["client"], "kwargs": {"num_predict": 50}}, server.url)
    server.play(
        encode("ollama", "invoke", case["body"]),
        BLANK,
        GOOD,
    )
    policy = RetryPolicy(remedies={CUT: [RaiseOutputBudget()], ReplyKind.BLANK: [Nudge()]})
    ask("invoke", RetryingChatModel(model, policy))
    budgets = [request["json"]["options"]["num_predict"] for request in server.requests]
    assert budgets == [50, 100, 100]


@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_a_budget_among_model_kwargs_is_raised_under_its_name(server, mode):
    """As in ChatGroq, ChatDeepSeek and ChatXAI, which have no field of that name."""
    server.play(Turn(finish="length"), GOOD)
    model = BaseChatOpenAI(
        model="model-a",
        api_key="none",
        base_url=f"{server.url}/v1",
        max_retries=0,
        model_kwargs={"max_completion_tokens": 50},
    )
    policy = RetryPolicy(remedies={CUT: [RaiseOutputBudget()]})
    ask(mode, RetryingChatModel(model, policy))
    first, second = (request["json"] for request in server.requests)
    assert first["max_completion_tokens"] == 50
    assert second == {**first, "max_completion_tokens": 100}


def test_a_budget_unknown_before_starts_from_what_was_used(server):
    case = CASES["cohere-max-tokens-thinking-only"]
    server.play(encode(case["api"], "invoke", case["body"]), GOOD)
    policy = RetryPolicy(remedies={ReplyKind.TRUNCATED: [RaiseOutputBudget()]})
    ask("invoke", RetryingChatModel(build(case["client"], server.url), policy))
    first, second = (request["json"] for request in server.requests)
    assert "max_tokens" not in first
    assert second["max_tokens"] > 0


def test_options_of_a_call_to_ollama_keep_the_others(server):
    case = CASES["ollama-thinking-only-length"]
    server.play(encode("ollama", "invoke", case["body"]), GOOD)
    policy = RetryPolicy(remedies={ReplyKind.TRUNCATED: [RaiseOutputBudget(ceiling=90)]})
    model = RetryingChatModel(build(case["client"], server.url), policy)
    ask("invoke", model, options={"num_predict": 50, "seed": 1})
    assert server.requests[1]["json"]["options"] == {"num_predict": 90, "seed": 1}


def test_to_ollama_a_budget_below_zero_is_none():
    assert raised(RaiseOutputBudget(), max_tokens=-1) is None
