"""Where a provider is blank for everyone, a shared budget keeps retries from multiplying it."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest
from langchain_core.messages import AIMessage

from langchain_retrying import RetryBudget, RetryingChatModel, RetryPolicy
from langchain_retrying.testing import ScriptedChatModel
from wire.turns import BLANK, GOOD

CALLS = 1000
MODELS = 20
SHARE = 0.1


async def test_a_storm_of_calls_stays_within_the_budget_and_recovers(server):
    chat_openai = pytest.importorskip("langchain_openai").ChatOpenAI
    budget = RetryBudget(share=SHARE, reserve=int(SHARE * CALLS))
    policy = RetryPolicy(max_retries=2, wait=None, stop=budget)
    async with contextlib.AsyncExitStack() as stack:
        models = []
        for _ in range(MODELS):
            # All calls are under way at once; each client sends its own over a few connections.
            limits = httpx.Limits(max_connections=4)
            client = httpx.AsyncClient(limits=limits, timeout=600)
            await stack.enter_async_context(client)
            inner = chat_openai(
                model="model-a",
                api_key="none",
                base_url=f"{server.url}/v1",
                max_retries=0,
                http_async_client=client,
            )
            models.append(RetryingChatModel(inner, policy))

        async def calls(count: int) -> list[AIMessage]:
            return await asyncio.gather(
                *(models[number % MODELS].ainvoke("Hi") for number in range(count))
            )

        server.play(BLANK)
        assert {reply.content for reply in await calls(CALLS)} == {""}
        assert len(server.requests) == CALLS + budget.reserve

        # The server recovers: no call needs a retry, and each puts something back.
        server.play(GOOD)
        assert {reply.content for reply in await calls(100)} == {"Recovered."}
        assert len(server.requests) == 100
        assert budget.tokens == pytest.approx(100 * SHARE)

        # So single blanks are retried again.
        server.play(BLANK, GOOD)
        assert (await models[0].ainvoke("Hi")).content == "Recovered."


async def test_without_a_budget_every_call_is_retried_to_its_bound():
    model = ScriptedChatModel(lambda messages: "")
    wrapped = RetryingChatModel(model, RetryPolicy(max_retries=2, wait=None))
    await asyncio.gather(*(wrapped.ainvoke("Hi") for _ in range(100)))
    assert len(model.requests) == 300
