"""Batches, several prompts, logs: what `test_same_streams` does not do, with every model."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel

from side_by_side import small_models as small
from side_by_side import uses
from side_by_side.rows import FILTERS, needs, row
from side_by_side.small_models import always

pytestmark = FILTERS

OF_OLD = needs(hasattr(BaseChatModel, "predict"), "predict")

MODELS = {
    "a model that streams": small.ScriptedChatModel,
    "one that does not": small.Whole,
    "one with nothing but _generate": small.WholeSync,
    "one that streams synchronously only": small.SyncStreaming,
    "hooks without run_manager": small.NoRunManager,
    "keyword-only arguments": small.KeywordOnly,
    "one that reports tokens": small.Reporting,
    "generation_info and llm_output": small.Informing,
    "several candidates": small.Candidates,
    "public methods overridden": small.Overriding,
    "native events": small.Native,
}
USES = {
    "plain calls": uses.plainly,
    "batches": uses.batches,
    "generate": uses.generations,
    "async handlers": uses.async_handlers,
    "astream_log": uses.log_patches,
    "transform": uses.transformed,
}
CALLS = [
    row(f"{use} of {model}", always(cls=cls), function)
    for use, function in USES.items()
    for model, cls in MODELS.items()
] + [
    row("n", always(cls=small.Candidates), lambda model: uses.four_ways(model, n=2)),
    row("n of batches", always(cls=small.Candidates), lambda m: uses.batches(m.bind(n=2))),
    row("methods of old", always(), uses.as_of_old, marks=OF_OLD),
    row("messages of the caller", always(cls=small.Editing), uses.with_a_list),
]


@pytest.mark.parametrize("row", CALLS)
def test_calls(row):
    row.check()
