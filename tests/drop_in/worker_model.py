"""What a worker process imports: a wrapped model that is built there, once, and its calls."""

from __future__ import annotations

import asyncio
import os
import pickle
from functools import cache
from typing import Any

from langchain_openai import ChatOpenAI
from tenacity import stop_after_delay, wait_random_exponential

from langchain_retrying import RetryingChatModel, RetryPolicy

POLICY = RetryPolicy(
    max_retries=3,
    wait=wait_random_exponential(max=0.001),
    stop=stop_after_delay(60),
    on_exhausted="raise",
)


@cache
def model(url: str, policy: RetryPolicy) -> Any:
    client = ChatOpenAI(model="model-a", base_url=url, api_key="none", max_retries=0)
    return RetryingChatModel(client, policy)


def invoke(url: str, policy: RetryPolicy, prompt: str) -> Any:
    """The reply, the process, and the model's identity there."""
    return model(url, policy).invoke(prompt), os.getpid(), id(model(url, policy))


def astream(url: str, policy: RetryPolicy, prompt: str) -> list[str]:
    async def read() -> list[str]:
        return [chunk.content async for chunk in model(url, policy).astream(prompt)]

    return asyncio.run(read())


def call(pickled: bytes) -> Any:
    """Call what has been shipped by value, as Dask, Ray and Spark do."""
    return pickle.loads(pickled)()
