"""The command line and its demo: the real agents, the real ChatOpenAI, an embedded server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from contextlib import ExitStack
from importlib.metadata import version
from types import ModuleType

import pytest

for needed in ("rich", "werkzeug", "langchain_classic", "langchain_openai"):
    pytest.importorskip(needed, reason="the demo extra is not installed")
agents = pytest.importorskip("langchain.agents", reason="the demo extra is not installed")
if not hasattr(agents, "create_agent"):
    pytest.skip("the demo needs langchain 1", allow_module_level=True)

# ruff: noqa: E402 -- the imports need what is looked for above
from langsmith.utils import tracing_is_enabled

from langchain_retrying import is_empty_ai_message
from langchain_retrying._probe import cli, demo
from langchain_retrying._probe import runs as probe_runs
from langchain_retrying._probe.demo import JOBS, weather
from langchain_retrying._probe.demo.server import BlankingServer
from langchain_retrying._probe.figures import summarise
from langchain_retrying.testing import RecordingSleep

CALLS = 3
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


def summary_of(blank_rate: float):
    """All jobs, and the requests that the servers have counted, in the order of the runs."""
    prompts = demo.prompts(CALLS)
    with ExitStack() as stack:
        servers = []
        enter = stack.enter_context
        stack.enter_context = lambda server: servers.append(server) or enter(server)
        runs = demo.demo_runs(stack, blank_rate, SEED)
        pending = ((run, prompt) for prompt in prompts for run in runs)
        asyncio.run(probe_runs.ask_all(pending, 1, lambda: None))
        return summarise("demo", runs, None), [server.requests for server in servers]


@pytest.fixture(scope="module")
def without_blanks():
    return summary_of(0)


@pytest.fixture(scope="module")
def half_blank():
    with RecordingSleep():
        return summary_of(0.5)


@pytest.fixture(scope="module")
def all_blank():
    with RecordingSleep():
        return summary_of(1)


def test_requests_are_those_that_the_servers_counted(without_blanks, half_blank, all_blank):
    for summary, counted in (without_blanks, half_blank, all_blank):
        sides = [side for job in summary.jobs for side in (job.bare, job.wrapped)]
        assert [side.requests for side in sides] == counted


def test_without_blanks_each_call_of_the_model_is_one_request(without_blanks):
    summary, _ = without_blanks
    assert [job.job for job in summary.jobs] == list(JOBS)
    for job in summary.jobs:
        for side in (job.bare, job.wrapped):
            assert (side.calls, side.empty.count, side.outcomes["answer"]) == (CALLS, 0, CALLS)
            assert side.requests == side.model_calls == CALLS * (2 if "gent" in job.job else 1)


def test_wrapped_answers_what_is_blank_bare(half_blank):
    """Each blank of the bare model costs the wrapped one a retry or two."""
    summary, _ = half_blank
    for job in summary.jobs:
        blanks = job.bare.empty.count
        assert blanks > 0
        assert job.bare.requests == job.bare.model_calls
        assert job.wrapped.empty.count == 0
        assert blanks <= job.wrapped.requests - job.wrapped.model_calls <= 2 * blanks


def test_a_model_that_is_always_blank_is_asked_three_times(all_blank):
    summary, _ = all_blank
    for job in summary.jobs:
        assert job.wrapped.empty.count == CALLS
        assert job.wrapped.requests - job.wrapped.model_calls == 2 * CALLS
        assert job.wrapped.answer_seconds.median is None
    recovered = summary.wrapped.recovered
    assert (recovered.count, recovered.total) == (0, CALLS * len(JOBS))


def whole(model, prompt):
    return model.invoke(prompt)


def streamed(model, prompt):
    first, *rest = model.stream(prompt, stream_usage=True)
    assert rest
    return first + rest


@pytest.mark.parametrize("ask", [whole, streamed])
def test_chat_openai_reads_all_that_the_server_says(ask):
    with BlankingServer(0, "seed") as server:
        model = demo.chat_model(server)
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
        model = demo.chat_model(server)
        answers = [ask(model, f"Hi {turn}") for turn in range(8)]
    assert all(map(is_empty_ai_message, answers))
    assert {answer.content for answer in answers} == {"", "\n"}


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_the_demo_prints_a_table_and_sentences(columns, capsys, monkeypatch):
    """In a narrow terminal nothing is cut off."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(demo.demo_runs, "__defaults__", (SEED,))
    assert cli.main(["demo", "--calls", str(CALLS), "--blank-rate", "0.5"]) == 0
    printed, progress = capsys.readouterr()
    assert progress == ""  # no bar where nobody looks
    assert "…" not in printed
    assert max(map(len, printed.splitlines())) <= columns
    rows = [line.split() for line in printed.splitlines() if line.startswith("  in ")]
    assert [row[1] for row in rows] == list(JOBS)
    assert {row[-3] for row in rows} == {"0"}  # of the wrapped model
    words = " ".join(printed.split())
    assert "of 12 calls of the bare model and of 0 of 12 of the wrapped one" in words
    assert "model and 'It is 18 °C in Paris' with the wrapped one." in words


def test_the_demo_for_machines(capsys):
    assert cli.main(["demo", "--calls", "1", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert [job["job"] for job in summary["jobs"]] == list(JOBS)


def test_settings_meant_for_other_models_do_not_reach_the_demo(monkeypatch, caplog):
    for name, value in SETTINGS_OF_OTHERS.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    traced = []

    def stream(model):
        traced.append(tracing_is_enabled())
        return probe_runs.stream(model)

    monkeypatch.setattr(demo, "JOBS", {"stream": stream})  # the jobs' models are all alike
    assert cli.main(["demo", "--calls", "1", "--blank-rate", "1"]) == 0
    assert traced == [False, False]
    assert dict(os.environ) == before
    assert logging.getLogger("langchain_retrying").level == logging.NOTSET
    assert not [record for record in caplog.records if record.name == "langchain_retrying"]


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "required: command"),
        (["dance"], "invalid choice: 'dance'"),
        (["demo", "--calls", "0"], "must be a whole number, at least 1, not 0"),
        (["demo", "--calls", "few"], "must be a whole number, at least 1, not few"),
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
    for name in [name for name in sys.modules if name.startswith("langchain_retrying._probe.demo")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "werkzeug", None)  # Python's way to say: not there
    assert cli.main(["demo"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'langchain-retrying[demo]'" in line


def test_ctrl_c_during_imports(monkeypatch, capsys):
    """They take most of the time until the first request."""

    class Interrupted(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    name = "langchain_retrying._probe.demo"
    monkeypatch.setitem(sys.modules, name, Interrupted(name))
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr() == ("", "")


def test_the_version(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.strip() == version("langchain-retrying")
