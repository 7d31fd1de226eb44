"""Replies of real providers, as they come over the wire, through the real integrations.

Each is played to the bare model and to the wrapped one, with a good reply behind it. The labels
are those of `wire/cases.json`; `expected_via_langchain` counts where LangChain hides the output.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from conftest import chunks_of
from langchain_retrying import ReplyKind, RetryingChatModel, judge
from langchain_retrying._judge.finish_reasons import reasons_in
from wire.clients import bound, build
from wire.replies import encode
from wire.server import WireServer
from wire.turns import GOOD

WIRE = Path(__file__).parents[1].joinpath("wire")
CASES = json.loads(WIRE.joinpath("cases.json").read_text("utf-8"))
# Through further integrations, most of which `make test-integrations` alone installs.
MORE_CASES = json.loads(WIRE.joinpath("more_cases.json").read_text("utf-8"))
WAYS = {"invoke": ("invoke", "ainvoke"), "stream": ("stream", "astream")}
# What the judge may say of the bare model's message. Words of a refusal and the remains of a cut
# tool call are usable, whatever the label says of the finish reason beside them.
KINDS = {
    "empty-retryable": {ReplyKind.BLANK},
    "malformed": {ReplyKind.MALFORMED},
    "truncated": {ReplyKind.TRUNCATED, ReplyKind.ANSWER},
    "blocked": {ReplyKind.BLOCKED, ReplyKind.ANSWER},
    "not-empty": {ReplyKind.ANSWER},
    "error": set(ReplyKind),
    "later candidate": {ReplyKind.BLANK, ReplyKind.MALFORMED},
}
# Where the contract has it otherwise than the label.
RELABELLED = {
    # LangChain drops the one chunk, and the reason with it: a stream without a chunk is blank.
    "openai-stream-delta-missing": "empty-retryable",
    # The first candidate is empty, a later one is usable: it comes first, without a request more.
    "openai-chat-n2-first-empty": "later candidate",
    "openai-chat-copilot-blank-first-choice": "later candidate",
}
RETRIED = {"empty-retryable", "malformed"}
GENERATED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Outcome:
    """What a caller gets; equal if it is the same but for generated ids."""

    chunks: tuple[str, ...] = ()
    error: tuple[type[Exception], str] | None = None
    message: AIMessage | None = None

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Outcome)
        return (self.chunks, self.error) == (other.chunks, other.error)

    __hash__ = None

    @property
    def text(self) -> str:
        content = self.message.content if self.message else ""
        blocks = [content] if isinstance(content, str) else content
        return "".join(
            block if isinstance(block, str) else block.get("text", "") for block in blocks
        )


class Score:
    """How many cases of each label came out how; shown at the end of the run."""

    def __init__(self) -> None:
        self.cases: Counter[tuple[str, str]] = Counter()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("wire cases")
        for (expected, result), count in sorted(self.cases.items()):
            terminalreporter.write_line(f"{count:4} {expected}: {result}")


@pytest.fixture(scope="module")
def score(request: pytest.FixtureRequest) -> Score:
    score = Score()
    request.config.pluginmanager.register(score)
    return score


def play(server: WireServer, case: dict[str, Any], way: str, model: Any) -> Outcome:
    api, mode, client = case["api"], case["mode"], case["client"]
    server.play(encode(api, mode, case["body"], case.get("content_type")), GOOD)
    try:
        chunks = chunks_of(way, bound(client, model), **client.get("call_kwargs", {}))
    except Exception as error:
        # LiteLLM's end with a traceback.
        return Outcome(error=(type(error), str(error)[:200]))
    first, *rest = chunks
    return Outcome(
        chunks=tuple(
            GENERATED.sub("", f"{type(chunk).__name__} {chunk.model_dump()}") for chunk in chunks
        ),
        message=first + rest if rest and isinstance(first, AIMessageChunk) else first,
    )


def is_as_recorded(outcome: Outcome, observed: dict[str, Any] | None) -> bool:
    """Whether this version of an integration makes of a reply what the label was written for."""
    if observed is None:
        return True
    if outcome.error is not None:
        return outcome.error[0].__name__ == observed["type"]
    reasons = reasons_in(observed.get("response_metadata", {}))
    return observed["type"] == type(outcome.message).__name__ and set(reasons) <= set(
        reasons_in(outcome.message.response_metadata)
    )


@pytest.mark.filterwarnings(
    # Of the integrations' own: a finish reason and content blocks that are new to them.
    "ignore:.* is not a valid FinishReason:UserWarning",
    "ignore:Pydantic serializer warnings:UserWarning",
    r"ignore:\s*Warning. Output may vary each run:UserWarning",
)
@pytest.mark.parametrize(
    ("case", "way"),
    [
        pytest.param(case, way, id=f"{case['id']}-{way}")
        for case in CASES + MORE_CASES
        for way in WAYS[case["mode"]]
    ],
)
def test_a_reply_off_the_wire(server, score, case, way):
    """What is blank or malformed is asked for again, all else is as the bare model has it."""
    expected = case.get("expected_via_langchain", case["expected"])
    expected = RELABELLED.get(case["id"], expected)
    model = build(case["client"], server.url)
    bare = play(server, case, way, model)
    if not is_as_recorded(bare, case.get("observed")):
        pytest.skip("this version of the integration makes something else of it")
    assert len(server.requests) == 1, "the client itself retries"
    wrapped = play(server, case, way, RetryingChatModel(build(case["client"], server.url)))
    requests = len(server.requests)

    result = "other"
    if requests == 2 and wrapped.text == "Recovered.":
        result = "retried"
    elif requests == 1:
        result = "as bare" if wrapped == bare else "not as bare"
    score.cases[expected, result] += 1

    if bare.message:
        kinds = KINDS[expected]
        if case in MORE_CASES and expected != "not-empty":
            kinds = kinds - {ReplyKind.ANSWER}
        assert judge(bare.message) in kinds
    if expected in RETRIED:
        assert result == "retried", wrapped
    elif expected == "later candidate":
        assert result == "not as bare"
        assert judge(wrapped.message) is ReplyKind.ANSWER
    elif expected == "error" and bare.message:
        assert result in ("retried", "as bare"), wrapped
    else:
        assert requests == 1
        assert wrapped == bare
