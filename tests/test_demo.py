"""The command line and its demo: the real agents, the real ChatOpenAI, an embedded server."""

from __future__ import annotations

import logging
import os
import sys

import pytest

for needed in ("rich", "werkzeug", "langchain_classic", "langchain_openai"):
    pytest.importorskip(needed, reason="the demo extra is not installed")
agents = pytest.importorskip("langchain.agents", reason="the demo extra is not installed")
if not hasattr(agents, "create_agent"):
    pytest.skip("the demo needs langchain 1", allow_module_level=True)

# ruff: noqa: E402 -- the imports need what is looked for above
from langsmith.utils import tracing_is_enabled

from langchain_retrying import _demo, cli, is_empty_ai_message
from langchain_retrying._demo.runs import JOBS, SIDES, Tally, chat_model, run, weather
from langchain_retrying._demo.server import BlankingServer

TURNS = 3
SEED = 6  # at a rate of 0.5 each job has a blank and an answer, and no three blanks in a row
SETTINGS_OF_OTHERS = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "socks5://127.0.0.1:9",
    "OPENAI_PROXY": "http://127.0.0.1:9",
    "OPENAI_BASE_URL": "http://127.0.0.1:9",
    "OPENAI_ORG_ID": "org-of-another-model",
    "LC_OUTPUT_VERSION": "v1",
    "LANGSMITH_TRACING": "true",
}


@pytest.fixture(autouse=True)
def _no_waiting(slept):
    """The waits between attempts are recorded only."""


def tally_of(job: str, side: str, blank_rate: float) -> Tally:
    tally = Tally(job, side)
    run(tally, [f"Question {turn + 1}: are you there?" for turn in range(TURNS)], blank_rate, SEED)
    return tally


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("job", JOBS)
def test_without_blanks_each_call_is_one_request(job, side):
    tally = tally_of(job, side, 0)
    assert (tally.turns, tally.blank_turns, tally.extra_requests) == (TURNS, 0, 0)
    assert tally.calls == tally.attempts == tally.requests == TURNS * (2 if "gent" in job else 1)
    assert len(tally.seconds_to_text) == TURNS


@pytest.mark.parametrize("job", JOBS)
def test_wrapped_answers_the_turns_that_are_blank_bare(job):
    """Each blank of the bare model costs the wrapped one a retry or two."""
    bare, wrapped = (tally_of(job, side, 0.5) for side in SIDES)
    assert bare.blank_turns > 0
    assert bare.extra_requests == 0
    assert wrapped.blank_turns == 0
    assert bare.blank_turns <= wrapped.extra_requests <= 2 * bare.blank_turns
    assert wrapped.attempts == wrapped.requests


@pytest.mark.parametrize("job", ["stream", "create_agent"])
def test_a_model_that_is_always_blank_is_asked_three_times(job):
    wrapped = tally_of(job, "wrapped", 1)
    assert wrapped.blank_turns == TURNS
    assert wrapped.extra_requests == 2 * TURNS
    assert wrapped.seconds_to_text == []


def whole(model, prompt):
    return model.invoke(prompt)


def streamed(model, prompt):
    first, *rest = model.stream(prompt, stream_usage=True)
    assert rest
    return first + rest


@pytest.mark.parametrize("ask", [whole, streamed])
def test_chat_openai_reads_all_that_the_server_says(ask):
    with BlankingServer(0, "seed") as server:
        model = chat_model(server)
        answer = ask(model, "Hi")
        assert answer.content == "Yes, I am."
        assert answer.usage_metadata["total_tokens"] == 25
        assert answer.response_metadata["finish_reason"] == "stop"
        (call,) = ask(model.bind_tools([weather]), "Hi").tool_calls
        assert (call["name"], call["args"]) == ("weather", {"city": "Paris"})
    assert server.requests == 2


@pytest.mark.parametrize("ask", [whole, streamed])
def test_blank_answers_come_in_several_forms(ask):
    with BlankingServer(1, "seed") as server:
        model = chat_model(server)
        answers = [ask(model, f"Hi {turn}") for turn in range(8)]
    assert all(map(is_empty_ai_message, answers))
    assert {answer.content for answer in answers} == {"", "\n"}


def test_the_demo_ends_with_a_table_and_a_sentence(capsys, monkeypatch):
    """In a narrow terminal nothing is cut off; a wider one changes nothing."""
    monkeypatch.setenv("COLUMNS", "80")
    argv = ["demo", "--turns", str(TURNS), "--blank-rate", "0.5", "--seed", str(SEED)]
    assert cli.main(argv) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80
    rows = [line.split()[:2] for line in printed.splitlines() if line.endswith(" ms ")]
    assert rows == [[job, side] for job in JOBS for side in SIDES]
    sentence = " ".join(printed.split()).partition("The user saw nothing in ")[2]
    assert "of 12 turns with the bare model and in 0 with the wrapped one" in sentence


def test_settings_meant_for_other_models_do_not_reach_the_demo(monkeypatch, caplog):
    for name, value in SETTINGS_OF_OTHERS.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with _demo._undisturbed():
        assert not tracing_is_enabled()
    monkeypatch.setattr(_demo, "JOBS", ["stream"])  # the jobs' models are all alike
    assert cli.main(["demo", "--turns", "1", "--blank-rate", "1"]) == 0
    assert dict(os.environ) == before
    assert logging.getLogger("langchain_retrying").level == logging.NOTSET
    assert not [record for record in caplog.records if record.name == "langchain_retrying"]


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "required: command"),
        (["dance"], "invalid choice: 'dance'"),
        (["demo", "--turns", "0"], "--turns: must be at least 1, not 0"),
        (["demo", "--turns", "few"], "--turns: invalid int value: 'few'"),
        (["demo", "--blank-rate", "1.5"], "--blank-rate: must be from 0 to 1, not 1.5"),
        (["demo", "--blank-rate", "-0.1"], "--blank-rate: must be from 0 to 1, not -0.1"),
        (["demo", "--blank-rate", "nan"], "--blank-rate: must be from 0 to 1, not nan"),
    ],
)
def test_arguments_that_can_not_be_used(argv, text, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(argv)
    assert exit_.value.code == 2
    assert text in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("langchain_retrying._demo")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich.console", None)  # Python's way to say: not there
    assert cli.main(["demo"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'langchain-retrying[demo]'" in line


def test_ctrl_c_ends_the_demo(monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(_demo, "run", interrupt)
    assert cli.main(["demo"]) == 130
