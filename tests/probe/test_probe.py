"""`langchain-retrying probe`, with the real ChatOpenAI and a server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

for needed in ("rich", "langchain.chat_models", "langchain_openai"):
    pytest.importorskip(needed, reason="the probe extra is not installed")

# ruff: noqa: E402 -- the imports need what is looked for above
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from langchain_retrying import RetryingChatModel
from langchain_retrying._probe import cli
from langchain_retrying._probe.figures import Share, Spread, wilson_interval
from langchain_retrying._probe.inputs import BUILT_IN, Prompt, parse_prompt
from langchain_retrying._probe.runs import Run, RunFailedError, ask_all, invoke, stream
from langchain_retrying.testing import ScriptedChatModel
from wire.clients import bound, build
from wire.replies import Reply, encode, failure
from wire.server import WireServer
from wire.turns import GOOD, Turn

CONTENT = "hunter2"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch, slept):
    """No keys, no proxies, and the waits between attempts are recorded only."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_PROXY", "_proxy")) or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")


def serve(server, reply):
    """Answer each request with `reply(body, number of the request from 1)`."""
    requests = []
    lock = threading.Lock()

    def respond(asked):
        with lock:
            requests.append(asked["json"])
            number = len(requests)
        return reply(asked["json"], number)

    server.play(respond)
    return requests


def by_turns(*contents):
    """Bare and wrapped are asked in turn, so that it is known whose attempt a request is."""
    turns = [answered(*(said if isinstance(said, tuple) else (said,))) for said in contents]
    return lambda body, number: turns[number - 1]


def answered(content, finish_reason="stop", *, usage=True):
    """A reply of 20 tokens in and 5 out."""
    return Turn(content, finish=finish_reason, tokens=(20, 5) if usage else None)


def probe(server, *options):
    url = server if isinstance(server, str) else f"{server.url}/v1"
    return cli.main(["probe", "m", "--base-url", url, "--concurrency", "1", *options])


def found(capsys, server, *options, code=0):
    """What `--json` prints."""
    assert probe(server, "--json", *options) == code
    return json.loads(capsys.readouterr().out)


def refusal(argv, capsys):
    """The sentence that ends a command with exit code 2."""
    try:
        code = cli.main(argv)
    except SystemExit as stopped:  # of argparse
        code = stopped.code
    assert code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err.splitlines()[-1]


# What is found


@pytest.mark.parametrize("way", [(), ("--stream",)], ids=["invoke", "stream"])
def test_what_is_counted(way, server, capsys):
    """Two calls each: a bare blank, then wrapped it recovers; and an answer from both."""
    requests = serve(server, by_turns("", "", "Hello.", "Hello.", "Hello."))
    result = found(capsys, server, "--calls", "2", *way)
    bare, wrapped = result["bare"], result["wrapped"]
    assert (bare["calls"], bare["requests"], bare["model_calls"]) == (2, 2, 2)
    assert bare["outcomes"]["blank"] == bare["outcomes"]["answer"] == 1
    assert bare["empty"] == {"count": 1, "total": 2, "rate": 0.5} | dict(
        zip(("low", "high"), wilson_interval(1, 2), strict=True)
    )
    assert (wrapped["calls"], wrapped["requests"], wrapped["model_calls"]) == (2, 3, 2)
    assert wrapped["empty"]["count"] == 0
    assert (bare["input_tokens"], bare["output_tokens"]) == (40, 10)
    assert (wrapped["input_tokens"], wrapped["output_tokens"]) == (60, 15)
    assert bare["tokens_reported"] is wrapped["tokens_reported"] is True
    assert (wrapped["recovered"]["count"], wrapped["recovered"]["total"]) == (1, 1)
    assert (wrapped["retry_input_tokens"], wrapped["retry_output_tokens"]) == (20, 5)
    assert 0 < wrapped["retry_seconds"]["median"] < wrapped["answer_seconds"]["p95"]
    assert result["stopped"] is None
    assert [bool(body.get("stream")) for body in requests] == [bool(way)] * 5


def test_what_does_not_recover_and_what_is_not_retried(server, capsys):
    script = ("", "", "", "", (None, "length"), (None, "length"), (None, "content_filter"), "Hi.")
    serve(server, by_turns(*script))
    result = found(capsys, server, "--calls", "3")
    bare, wrapped = result["bare"], result["wrapped"]
    kinds = ("blank", "truncated", "blocked", "malformed", "answer", "error")
    assert [bare["outcomes"][kind] for kind in kinds] == [1, 1, 1, 0, 0, 0]
    assert [wrapped["outcomes"][kind] for kind in kinds] == [1, 1, 0, 0, 1, 0]
    assert wrapped["requests"] == 5
    assert (wrapped["recovered"]["count"], wrapped["recovered"]["total"]) == (0, 1)
    # Of three replies two are not the one that came back, though all are blank.
    assert wrapped["retry_output_tokens"] == 10
    assert wrapped["output_tokens"] == 25


def test_a_bare_blank_that_langchain_takes_for_an_error(server, capsys):
    """An answer without choices: ChatOpenAI raises, and the wrapper knows it for a blank."""
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": None}

    def reply(_, number):
        return encode("openai-chat", "invoke", body) if number < 3 else answered("Hi")

    serve(server, reply)
    result = found(capsys, server, "--calls", "1")
    assert result["bare"]["outcomes"]["blank"] == 1
    assert result["bare"]["errors"] == {}
    assert result["wrapped"]["recovered"]["count"] == 1


CASES = json.loads(Path(__file__).parents[1].joinpath("wire", "cases.json").read_text("utf-8"))
# The wrapper takes the second candidate of a reply whose first is empty.
SECOND_CANDIDATE = {"openai-chat-n2-first-empty", "openai-chat-copilot-blank-first-choice"}


def measured(case, model, server):
    """One call of the model: the case's reply, and a good one behind it."""
    reply = encode(case["api"], case["mode"], case["body"], case.get("content_type"))
    server.play(reply, GOOD)
    bound_model = bound(case["client"], model).bind(**case["client"].get("call_kwargs", {}))
    run = Run("case", model, (invoke if case["mode"] == "invoke" else stream)(bound_model))
    with suppress(RunFailedError):
        asyncio.run(ask_all(iter([(run, Prompt("Hi"))]), 1, lambda: None))
    (turn,) = run.turns
    assert turn.calls[0].requests == len(server.requests)
    return turn


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("api", ["openai-chat", "openai-responses"])
def test_a_bare_reply_is_judged_as_the_wrapper_judges_its_first(server, api):
    """Replies of real providers, also those that LangChain takes for errors."""
    compared = Counter()
    for case in CASES:
        if case["api"] == api and case["id"] not in SECOND_CANDIDATE:
            model = build(case["client"], server.url)
            bare = measured(case, model, server)
            wrapped = measured(case, RetryingChatModel(model), server)
            if wrapped.calls[0].requests > 1:
                assert bare.outcome in ("blank", "malformed"), case["id"]
            else:
                assert bare.outcome == wrapped.outcome, case["id"]
                assert type(bare.error) is type(wrapped.error), case["id"]
            compared[bare.outcome] += 1
    assert {"answer", "blank", "truncated"} <= compared.keys()


def test_bare_and_wrapped_get_the_same_prompts(server, capsys):
    """The built-in ones, over and over, with their tools."""
    requests = serve(server, lambda *_: answered("Hello."))
    calls = len(BUILT_IN) + 1
    found(capsys, server, "--calls", str(calls))
    assert len(requests) == 2 * calls
    assert requests[::2] == requests[1::2]
    assert requests[0]["messages"] == requests[-1]["messages"]
    with_tools = [body for body in requests if "tools" in body]
    assert all(body["messages"][-1]["role"] == "tool" for body in with_tools)
    assert len(with_tools) == 2 * 2


def test_the_prompts_of_a_file(server, capsys, tmp_path):
    file = tmp_path / "prompts.jsonl"
    said = [{"role": "user", "content": "Two"}]
    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    lines = ["One", said, {"messages": said, "tools": tools, "model": "other"}]
    file.write_text("\n\n".join(["Plain, 5", *map(json.dumps, lines)]) + "\n", "utf-8")
    requests = serve(server, lambda *_: answered("Hello."))
    found(capsys, server, "--calls", "4", "--prompts", str(file))
    asked = [body["messages"][0]["content"] for body in requests[::2]]
    assert asked == ["Plain, 5", "One", "Two", "Two"]
    assert [body["model"] for body in requests] == ["m"] * 8
    assert ["tools" in body for body in requests] == [False] * 6 + [True] * 2


def test_so_many_calls_at_a_time(server, capsys):
    """Three requests wait for each other: with fewer at a time the run would not end well."""
    barrier = threading.Barrier(3)

    def reply(*_):
        barrier.wait(timeout=30)
        return answered("Hello.")

    serve(server, reply)
    assert found(capsys, server, "--calls", "3", "--concurrency", "3")["bare"]["calls"] == 3


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_the_report(columns, server, capsys, monkeypatch):
    """In a narrow terminal nothing is cut off."""
    monkeypatch.setenv("COLUMNS", str(columns))
    serve(server, by_turns("", "", "Hello.", ("", "length"), "Hello."))
    assert probe(server, "--calls", "2") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= columns
    words = " ".join(out.split())
    assert "empty replies 2 = 100% 0 = 0% 95% interval 34 to 100% 0 to 66%" in words
    assert "blank 1 0 truncated 1 0" in words
    assert "tokens in 40 60 tokens out 10 15" in words
    assert "retried calls 1 recovered 1" in words
    assert "Nothing usable came of 2 of 2 calls of the bare model and of 0 of 2 of the" in words
    assert "retries added 50% to its requests" in words
    assert "RetryPolicy(remedies={ReplyKind.TRUNCATED: [RaiseOutputBudget()]})" in words


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["tables", "JSON"])
def test_no_content_shows(options, server, capsys, tmp_path, caplog):
    file = tmp_path / "prompts.jsonl"
    file.write_text(f"Prompt {CONTENT}", "utf-8")
    serve(server, by_turns(" ", " ", f"Reply {CONTENT}"))
    assert probe(server, "--calls", "1", "--prompts", str(file), *options) == 0
    assert CONTENT not in "".join(capsys.readouterr()) + caplog.text


@pytest.mark.parametrize(
    ("retried", "says"),
    [
        (0, "No reply was empty: with 95% confidence at most 24% are."),
        (9, "Calls that were retried: 9, too few to tell whether that helps."),
        (10, "Of 10 calls that were retried 10 recovered: with 95% confidence 72 to 100% do."),
    ],
)
def test_whether_retries_help(retried, says, server, capsys):
    """Bare always answers; so many wrapped calls are blank first."""
    blanks = {3 * call + 2 for call in range(retried)}
    serve(server, lambda _, number: answered("" if number in blanks else "Hello."))
    assert probe(server, "--calls", "12") == 0
    assert says in " ".join(capsys.readouterr().out.split())


def test_tokens_that_are_not_reported(server, capsys):
    serve(server, lambda *_: answered("Hello.", usage=False))
    probe(server, "--calls", "1")
    out = " ".join(capsys.readouterr().out.split())
    assert "tokens in 0+ 0+ tokens out 0+ 0+" in out
    assert "not all replies reported theirs" in out


# What goes wrong


def failing(status, message="Not today."):
    """A failure that the client does not repeat by itself."""
    return failure({"error": {"message": message, "code": "no"}}, status)


@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_a_server_that_fails_at_once(status, server, capsys):
    requests = serve(server, lambda *_: failing(status))
    assert probe(server) == 1
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("The calls failed (")
    assert f"Error code: {status} - " in line
    assert "Not today." in line
    assert len(requests) == 3


def test_a_server_that_repeats_the_key(server, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CONTENT)
    serve(server, lambda *_: failing(401, f"Wrong API key: {CONTENT}."))
    assert probe(server) == 1
    assert "Wrong API key: ***." in capsys.readouterr().err


def test_a_server_that_can_not_be_reached(capsys, monkeypatch):
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)  # of its own retries
    with WireServer() as gone:
        url = f"{gone.url}/v1"
    assert probe(url) == 1
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "Connection error." in line


def test_failures_of_all_that_was_asked(server, capsys):
    requests = serve(server, lambda *_: failing(500))
    assert probe(server, "--calls", "1") == 1
    assert len(requests) == 2


def test_failures_among_replies_are_told(server, capsys):
    serve(server, lambda _, number: failing(500) if number == 1 else answered("Hello."))
    assert probe(server, "--calls", "2") == 0
    out = capsys.readouterr().out
    assert ["errors", "1", "0"] in [line.split() for line in out.splitlines()]
    assert out.rstrip().endswith("Error 1.")


def test_failures_among_replies_are_counted(server, capsys):
    serve(server, lambda _, number: failing(500) if number in (1, 3) else answered("Hello."))
    result = found(capsys, server, "--calls", "2")
    assert result["bare"]["outcomes"]["error"] == 2
    assert sum(result["bare"]["errors"].values()) == 2
    assert result["bare"]["empty"]["count"] == 0
    assert result["wrapped"]["calls"] == 2


def test_a_body_that_is_no_completion(server, capsys):
    serve(server, lambda *_: Reply(b"<html>Welcome</html>", "text/html"))
    assert probe(server) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("The calls failed (")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file or directory"),
        ("", "there is no prompt in it"),
        ("\n \n", "there is no prompt in it"),
        ('Hi\n{"messages": ', "line 2: begins like JSON, but is not JSON of a text"),
        ('Hi\n\n"Hi', "line 3: begins like JSON"),
        ('{"prompt": "hunter2"}', "line 1: begins like JSON"),
        ('{"messages": []}', "line 1: begins like JSON"),
        ('[{"role": "user"}]', "line 1: begins like JSON"),
        ("[" * 100_000, "line 1: begins like JSON"),
        ('[{"role": "user", "content": "Hi"}, {"role": "hunter2"}]', "line 1: begins like JSON"),
        (b"\xff", "UnicodeDecodeError"),
    ],
)
def test_a_file_that_holds_no_prompts(text, says, tmp_path, capsys):
    file = tmp_path / "prompts.jsonl"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    argv = ["probe", "m", "--base-url", "http://127.0.0.1:9", "--prompts", str(file)]
    line = refusal(argv, capsys)
    assert says in line
    assert str(file) in line
    assert CONTENT not in line


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "required: MODEL"),
        (["m", "--calls", "0"], "--calls: must be a whole number, at least 1, not 0"),
        (["m", "--calls", "many"], "--calls: must be a whole number, at least 1, not many"),
        (["m", "--calls", "-3"], "--calls: must be a whole number, at least 1, not -3"),
        (["m", "--concurrency", "0"], "--concurrency: must be a whole number, at least 1, not 0"),
        (["no-such-model"], "Unable to infer model provider"),
        (["no-such-model"], "Name it as in openai:gpt-5-mini or ollama:qwen3, or give a server"),
        ([" "], "Can't build the model ' '"),
        (["openai:m"], "OPENAI_API_KEY"),
        (["anthropic:m"], "No API key: the environment variable ANTHROPIC_API_KEY is not set."),
        (["google_genai:m"], "GOOGLE_API_KEY"),
        (["cohere:m"], "CO_API_KEY"),
    ],
)
def test_arguments_that_can_not_be_used(options, says, capsys):
    provider = options[0].partition(":")[0] if options else ""
    if provider in ("google_genai", "cohere", "anthropic"):
        pytest.importorskip(f"langchain_{provider}")
    assert says in refusal(["probe", *options], capsys)


def test_an_integration_that_is_not_installed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "langchain_ollama", None)  # Python's way to say: not there
    line = refusal(["probe", "ollama:m"], capsys)
    assert "Can't build the model 'ollama:m' (ImportError: " in line
    assert "pip install" in line
    assert "langchain-ollama" in line


def test_an_extra_that_is_not_installed(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("langchain_retrying._probe")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert "pip install 'langchain-retrying[probe]'" in refusal(["probe", "m"], capsys)


async def test_no_turn_begins_after_an_interrupt():
    """Some clients swallow a cancellation; the others are cut off with the loop."""

    async def swallow(prompt, config):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1)

    run = Run("job", ScriptedChatModel([]), swallow)
    asking = asyncio.create_task(ask_all(iter([(run, Prompt([]))] * 3), 1, lambda: None))
    while not run.turns:
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    (worker,) = asyncio.all_tasks() - {asyncio.current_task()}
    worker.cancel()
    await worker
    assert len(run.turns) == 1


def test_an_interrupt_in_the_middle(server):
    """The fourth request sends Ctrl-C, and is left without an answer until the probe is over."""
    over = threading.Event()

    def reply(_, number):
        if number == 4:
            os.kill(process.pid, signal.SIGINT)
            over.wait()
        return answered("" if number == 1 else "Hello.")

    requests = serve(server, reply)
    command = (
        # Where this is run in the background, a child ignores it.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import sys; from langchain_retrying._probe.cli import main; sys.exit(main())"
    )
    url = f"{server.url}/v1"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "probe", "m", "--base-url", url]
        + ["--concurrency", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate()
    finally:
        over.set()
    assert process.returncode == 130
    assert err == "Interrupted.\n"
    result = json.loads(out)
    assert result["stopped"] == "Interrupted."
    assert (result["bare"]["calls"], result["wrapped"]["calls"]) == (2, 1)
    assert result["bare"]["empty"]["count"] == 1
    # The one that was cut off was sent, too.
    assert result["bare"]["requests"] + result["wrapped"]["requests"] == len(requests) == 4


# The pure parts


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    # As computed by R's `prop.test(count, total, correct = FALSE)`.
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 20, 0.1119, 0.4687), (0, 0, 0.0, 1.0)],
)
def test_wilson_intervals(count, total, low, high):
    assert wilson_interval(count, total) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_share_lies_within_its_bounds(seen, not_seen):
    share = Share.of(seen, seen + not_seen)
    if seen + not_seen:
        assert 0 <= share.low <= share.rate <= share.high <= 1
        other = Share.of(not_seen, seen + not_seen)
        assert (other.low, other.high) == pytest.approx((1 - share.high, 1 - share.low))


def test_spreads():
    assert Spread.of([]) == Spread(None, None)
    assert Spread.of([2.0]) == Spread(2.0, 2.0)
    assert Spread.of([3.0, 1.0]) == Spread(2.0, 3.0)
    hundred = Spread.of([float(number) for number in range(1, 101)])
    assert (hundred.median, hundred.p95) == (50.5, 95)


def test_messages_keep_their_tool_calls():
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "found"},
    ]
    prompt = parse_prompt(json.dumps(messages))
    assert prompt.messages[1].tool_calls[0]["args"] == {"a": 1}
    assert isinstance(prompt.messages[2], ToolMessage)
