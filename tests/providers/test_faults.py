"""A wrapped ChatOpenAI on a server that fails in all ways: `make soak`, in short."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

if sys.platform == "win32":
    pytest.skip("what is left behind is counted as Unix counts it", allow_module_level=True)

from wire.soaking import soak
from wire.uses import WAYS


@pytest.fixture
def _untraced_threads():
    """Coverage keeps something of each thread, and the server has many.

    The marker `no_cover` does not do: where xdist runs the tests two collectors are stacked, and
    to stop the upper one starts the lower.
    """
    tracer = threading.gettrace()
    threading.settrace(None)
    yield
    threading.settrace(tracer)


@pytest.mark.usefixtures("_untraced_threads")
def test_each_call_comes_to_what_was_served_and_leaves_nothing_behind(caplog):
    caplog.set_level(logging.ERROR, logger="langchain_retrying")
    tally = soak(calls=100, seed=94)  # all ways, and all faults at first requests
    assert tally.calls >= 100
    assert tally.ways.keys() == WAYS.keys()
    assert tally.outcomes.keys() == {"answer", "empty", "error", "stopped"}
