"""Wrapped models in worker processes, which share nothing with this one."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import cloudpickle
import pytest
import worker_model
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from worker_model import POLICY

from langchain_retrying import EmptyCompletionError, RetryingChatModel, RetryPolicy
from wire.faults import Faults


@pytest.fixture(scope="module")
def workers():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def faults():
    return Faults()


@pytest.fixture
def url(server, faults):
    server.play(faults)
    return f"{server.url}/v1"


def test_a_model_built_in_the_worker(workers, url):
    """Built by a function of a module, once in each process."""
    calls = [
        workers.submit(worker_model.invoke, url, POLICY, f"call {i}: null, thoughts, answer")
        for i in range(6)
    ]
    places = {}
    for i, call in enumerate(calls):
        reply, process, model = call.result()
        assert reply.content == f"Reply {i}.2 is seen."
        account = reply.response_metadata["empty_retry"]
        assert account["attempts"] == 3
        assert [rejected["saw_reasoning"] for rejected in account["rejected"]] == [False, True]
        assert places.setdefault(process, model) == model
    assert os.getpid() not in places


def test_a_stream_read_in_the_worker(workers, url):
    prompt = "call 1: white-space, answer"
    pieces = workers.submit(worker_model.astream, url, POLICY, prompt).result()
    assert [piece for piece in pieces if piece] == ["Reply", " 1.1", " is", " seen."]


def test_an_error_comes_back_from_the_worker(workers, url):
    call = workers.submit(worker_model.invoke, url, POLICY, "call 1: truncated")
    with pytest.raises(EmptyCompletionError) as caught:
        call.result()
    assert caught.value.kind == "truncated"
    assert caught.value.attempts == 1


def work_on(url):
    """A closure over a class and a policy that no module has, as in a notebook."""

    class Impatient(ChatOpenAI):
        pass

    def work():
        policy = RetryPolicy(wait=None, nudge=lambda messages, error: f"Again, {error.attempts}.")
        client = Impatient(model="model-a", base_url=url, api_key="none", max_retries=0)
        model = RetryingChatModel(client, policy)
        return isinstance(model, Impatient), model.invoke("call 1: null, answer").content

    return work


def test_a_model_built_by_a_function_that_is_shipped(workers, url, faults):
    pickled = cloudpickle.dumps(work_on(url))
    assert workers.submit(worker_model.call, pickled).result() == (True, "Reply 1.1 is seen.")
    assert [served.nudged for served in faults.served["1"]] == [False, True]


def wrapper_to_ship():
    """A wrapper around a model without connections, both of whose parts no module has."""

    class Polite(FakeListChatModel):
        def _call(self, *args, **kwargs):
            reply = super()._call(*args, **kwargs)
            return f"{reply}, please." if reply else reply

    policy = RetryPolicy(max_retries=1, wait=lambda state: 0.0)
    return RetryingChatModel(Polite(responses=["", "Again"]), policy)


def test_a_wrapper_that_is_shipped(workers):
    model = wrapper_to_ship()
    pickled = cloudpickle.dumps(lambda: (model.retry_policy.max_retries, model.invoke("Hi")))
    max_retries, reply = workers.submit(worker_model.call, pickled).result()
    assert (max_retries, reply.content) == (1, "Again, please.")
    assert reply.response_metadata["empty_retry"]["attempts"] == 2


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_what_holds_connections_is_not_shipped(pickler):
    """Bare or wrapped: a model of OpenAI's has locks."""
    model = ChatOpenAI(model="model-a", api_key="none")
    for thing in (model, RetryingChatModel(model)):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickler.dumps(thing)
