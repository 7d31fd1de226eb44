"""`langchain-retrying judge FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, message_to_dict

from langchain_retrying import ReplyKind, judge
from langchain_retrying._probe.cli import main
from langchain_retrying._probe.saved import saved_reply

CASES = json.loads(Path(__file__).parents[1].joinpath("wire", "cases.json").read_text("utf-8"))
KINDS = {
    "empty-retryable": {ReplyKind.BLANK},
    "malformed": {ReplyKind.MALFORMED},
    "truncated": {ReplyKind.TRUNCATED, ReplyKind.ANSWER},  # a cut tool call is usable
    "blocked": {ReplyKind.BLOCKED, ReplyKind.ANSWER},  # and so are the words of a refusal
    "not-empty": {ReplyKind.ANSWER},
}
# Bodies of which only LangChain, or a person, can tell what they are.
OTHERWISE = {
    "anthropic-content-null",
    "gemini-empty-object-body",
    "kimi-tool-call-leaked-in-reasoning",
    "openai-chat-copilot-blank-first-choice",
    "openai-chat-n2-first-empty",
    "openrouter-native-malformed-function-call",
    "sglang-tool-parser-dropped-content",
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["id"])
        for case in CASES
        if case["mode"] == "invoke"
        and isinstance(case["body"], dict)
        and case["expected"] in KINDS
        and case["id"] not in OTHERWISE
    ],
)
def test_a_providers_reply_is_judged_as_the_message_made_of_it(case):
    assert judge(saved_reply(case["body"])) in KINDS[case["expected"]]


MESSAGE = AIMessage("", response_metadata={"stop_reason": "max_tokens"})


@pytest.mark.parametrize(
    "saved", [MESSAGE.model_dump(), message_to_dict(MESSAGE), dumpd(MESSAGE)], ids=type
)
def test_a_message_however_it_was_saved(saved, tmp_path, capsys):
    file = tmp_path / "message.json"
    file.write_text(json.dumps(saved), "utf-8")
    assert main(["judge", str(file)]) == 0
    assert capsys.readouterr().out == (
        "kind           truncated\n"
        "finish reason  max_tokens (stop_reason)\n"
        "seen           nothing\n"
    )


def test_standard_input_and_no_content(monkeypatch, capsys):
    message = AIMessage([{"type": "thinking", "thinking": "hunter2"}, " "])
    monkeypatch.setattr("sys.stdin.read", lambda: json.dumps(message.model_dump()), raising=False)
    main(["judge", "-"])
    out = capsys.readouterr().out
    assert "kind           blank\nfinish reason  none\nseen           blank text, reasoning" in out
    assert "hunter2" not in out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "No such file"),
        ("", "Expecting value"),
        ("[]", "neither a LangChain message nor a reply of OpenAI"),
        ("{}", "neither a LangChain message nor a reply of OpenAI"),
        ('{"choices": 5}', "not its parts"),
        ('{"content": "", "response_metadata": 5}', "not its parts"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff", "can't decode byte 0xff"),
    ],
)
def test_what_is_no_reply_gets_an_error(text, says, tmp_path, capsys):
    file = tmp_path / "message.json"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SystemExit) as stopped:
        main(["judge", str(file)])
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
