"""The rows once more, with a blank before each reply.

What comes out, is heard and traced is then as it is from the bare model without blanks, but for
`on_retry` and the account of the retries.
"""

from __future__ import annotations

from typing import Any

import pytest
import test_same_agents as agents
import test_same_binding as binding
import test_same_state as state
import test_same_streams as streams
import test_same_wire as wire

from side_by_side.rows import FILTERS

pytestmark = FILTERS

# What counts or prints attempts.
ATTEMPTS = ("rate_limiter", "set_debug")


def rows(*tables: list[Any], uses: str = "") -> list[Any]:
    return [
        row
        for table in tables
        for row in table
        if row.id.startswith(uses) and not row.id.startswith(ATTEMPTS) and "cache" not in row.id
    ]


SMALL = rows(
    [row for row in state.STATE + state.IDENTITY if row.values[0].scripted],
    [*binding.BINDING, *binding.STRUCTURED, *binding.CONFIGURABLE],
    [*agents.CHAINS, *agents.EXECUTORS, *agents.GRAPHS, *agents.AGENTS],
) + [
    row
    for use in ("four_ways", "events_v2", "events_v3", "a_v2")
    for row in rows(streams.CHUNK_FOR_CHUNK, uses=use)
]
WIRE = rows(wire.OPENAI, wire.RESPONSES, wire.ANTHROPIC, wire.GEMINI, wire.OLLAMA) + [
    row
    for use in ("four_ways", "events_v3", "a_tool_call")
    for row in rows(wire.EACH_ROWS, uses=use)
]


@pytest.mark.parametrize("row", SMALL)
def test_a_row_after_blanks(row):
    row.check_with_blanks()


@pytest.mark.parametrize("row", WIRE)
def test_a_row_over_the_wire_after_blanks(row, server):
    row.check_with_blanks(server)


@pytest.mark.parametrize("row", agents.OVER_THE_WIRE)
def test_an_agent_over_the_wire_after_blanks(row, server):
    row.check_with_blanks(server)
