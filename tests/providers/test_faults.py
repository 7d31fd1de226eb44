"""A wrapped ChatOpenAI on a server that fails in all ways: `make soak`, in short."""

from __future__ import annotations

import logging
import sys

import pytest

if sys.platform == "win32":
    pytest.skip("what is left behind is counted as Unix counts it", allow_module_level=True)

from wire.soaking import soak
from wire.uses import WAYS


@pytest.mark.no_cover  # coverage keeps something of each thread, and the server has many
def test_each_call_comes_to_what_was_served_and_leaves_nothing_behind(caplog):
    caplog.set_level(logging.ERROR, logger="langchain_retrying")
    tally = soak(calls=100, seed=94)  # all ways, and all faults at first requests
    assert tally.calls >= 100
    assert tally.ways.keys() == WAYS.keys()
    assert tally.outcomes.keys() == {"answer", "empty", "error", "stopped"}
