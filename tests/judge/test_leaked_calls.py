"""Tool calls that are printed as text, in each family's markup, and honest texts that are none."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_retrying._judge.leaked_calls import leaks_call, may_become_leak

NAMES = ("look_up", "send")
ARGS = {"key": "a", "note": 'b } ] </x> "c"\n\u00e9'}
JSON = json.dumps(ARGS)
CALL = json.dumps({"name": "look_up", "arguments": ARGS})
LLAMA = json.dumps({"name": "look_up", "parameters": ARGS})
BAR, LOW = "\uff5c", "\u2581"
BEGUN, ENDED = (f"<{BAR}tool{LOW}calls{LOW}{word}{BAR}>" for word in ("begin", "end"))
CALL_BEGUN, CALL_ENDED = (f"<{BAR}tool{LOW}call{LOW}{word}{BAR}>" for word in ("begin", "end"))
SEP = f"<{BAR}tool{LOW}sep{BAR}>"
NS = "antml:"
KIMI = (
    "<|tool_call_begin|>functions.look_up:0<|tool_call_argument_begin|>"
    + JSON
    + "<|tool_call_end|>"
)
LEAKS = {
    "hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "hermes, two": f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call><|im_end|>",
    "qwen3-coder": "<tool_call>\n<function=look_up>\n<parameter=key>\na\n</parameter>\n"
    "<parameter=note>\nb < c\n</parameter>\n</function>\n</tool_call>",
    "qwen3-coder, opener lost": "<function=look_up>\n<parameter=key>\na\n</parameter>\n"
    "</function>\n</tool_call>",
    "glm": "<tool_call>look_up\n<arg_key>key</arg_key>\n<arg_value>a</arg_value>\n"
    "<arg_key>note</arg_key>\n<arg_value>b</arg_value>\n</tool_call>",
    "glm, no arguments": "<tool_call>look_up\n</tool_call>",
    "kimi": f"<|tool_calls_section_begin|>{KIMI}<|tool_calls_section_end|>",
    "kimi, two": f"<|tool_calls_section_begin|>{KIMI}{KIMI}<|tool_calls_section_end|>",
    "deepseek v3": f"{BEGUN}{CALL_BEGUN}function{SEP}look_up\n```json\n{JSON}\n```{CALL_ENDED}"
    f"{ENDED}<{BAR}end{LOW}of{LOW}sentence{BAR}>",
    "deepseek v3.1": f"{BEGUN}{CALL_BEGUN}look_up{SEP}{JSON}{CALL_ENDED}{ENDED}",
    "deepseek dsml": f'<{BAR}DSML{BAR}function_calls>\n<{BAR}DSML{BAR}invoke name="look_up">\n'
    f'<{BAR}DSML{BAR}parameter name="key" string="true">a</{BAR}DSML{BAR}parameter>\n'
    f"</{BAR}DSML{BAR}invoke>\n</{BAR}DSML{BAR}function_calls>",
    "minimax": '<minimax:tool_call>\n<invoke name="look_up">\n<parameter name="key">a</parameter>\n'
    "</invoke>\n</minimax:tool_call>",
    "anthropic": f'<{NS}function_calls>\n<{NS}invoke name="look_up">\n'
    f'<{NS}parameter name="key">a</{NS}parameter>\n</{NS}invoke>\n</{NS}function_calls>',
    "anthropic, plain": '<function_calls>\n<invoke name="look_up">\n<parameter name="key">a < b'
    "</parameter>\n</invoke>\n</function_calls>",
    "invoke alone": '<invoke name="look_up"><parameter name="key">a</parameter></invoke>',
    "gpt-oss": "<|start|>assistant<|channel|>commentary to=functions.look_up <|constrain|>json"
    f"<|message|>{JSON}<|call|>",
    "gpt-oss, from the channel": f"<|channel|>commentary to=functions.look_up <|constrain|>json"
    f"<|message|>{JSON}<|call|>",
    "gpt-oss, stripped": f"commentary to=functions.look_up json{JSON}",
    "gpt-oss, to": f"to=functions.look_up<|channel|>commentary json<|message|>{JSON}",
    "mistral": f"[TOOL_CALLS] [{CALL}]",
    "mistral v13": f"[TOOL_CALLS]look_up[ARGS]{JSON}",
    "mistral, with id": f"[TOOL_CALLS]look_up[CALL_ID]a1B2c3D4e[ARGS]{JSON}</s>",
    "llama": f"<|python_tag|>{LLAMA}<|eom_id|>",
    "llama, two": f"<|python_tag|>[{LLAMA}, {LLAMA}]",
    "llama function": f"<function=look_up>{JSON}</function>",
    "gemma": "<start_function_call>call:look_up{key:<escape>a } b<escape>,n:3,o:{p:<escape>q"
    "<escape>}}<end_function_call>",
    "granite": f"<|tool_call|>[{CALL}]",
    "granite 3": f"<tool_call>[{CALL}]",
    "phi": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "functools": f"functools[{CALL}]",
}
leaks = pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)


@leaks
def test_a_call_is_seen(leak):
    assert leaks_call(leak, NAMES)
    assert leaks_call(f"\n {leak} \n", NAMES)
    assert leaks_call(f"I shall look it up.\n\n{leak}", NAMES)
    assert leaks_call(f"In `code` and\n```\na fence\n```\n{leak}\n", NAMES)


@leaks
def test_at_the_start_it_may_be_one_wherever_it_is_cut(leak):
    for end in range(len(leak)):
        assert may_become_leak(leak[:end], NAMES), leak[:end]
        assert may_become_leak(f" \n{leak[:end]}", NAMES)
    assert may_become_leak(f"{leak}\n", NAMES)


@leaks
def test_what_is_no_leak(leak):
    assert not leaks_call(leak, ())
    assert not may_become_leak(leak, ())
    assert not leaks_call(leak, ("another",))
    assert not leaks_call(leak[: len(leak) // 2], NAMES)
    assert not leaks_call(f"{leak} That is how it is done.", NAMES)
    assert not may_become_leak(f"{leak} That is how it is done.", NAMES)
    assert not leaks_call(f"Like this:\n```\n{leak}\n```", NAMES)
    assert not leaks_call(f"Like this:\n~~~xml\n{leak}", NAMES)  # a fence that is not closed
    if "\n" not in leak:
        assert not leaks_call(f"Write `{leak}`", NAMES)
        assert not leaks_call(f"Write `{leak}", NAMES)
    assert not may_become_leak(f"So: {leak}", NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{nothing}</tool_call>",
        '<tool_call>{"name": "look_up"}</tool_call>',
        '<tool_call>{"name": 3, "arguments": {}}</tool_call>',
        '<tool_call>["look_up"]</tool_call>',
        "<|python_tag|>print(3)",
        "[TOOL_CALLS]look_up[ARGS][1]",
        "<function=look_up>[1]</function>",
        '<invoke name="look_up"></invoke></function_calls>',
        '<invoke name="look_up"><param>a</param></invoke>',
        "<tool_call>" + "[" * 5000,
    ],
)
def test_broken_markup_is_none(text):
    assert not leaks_call(text, NAMES)


def test_json_without_markup_counts_only_alone_and_whole():
    assert leaks_call(CALL, NAMES)
    assert leaks_call(f" [{LLAMA}]\n", NAMES)
    assert not leaks_call(CALL, NAMES, bare_json=False)
    assert not leaks_call(f"{CALL} done", NAMES)
    assert not leaks_call(f"So: {CALL}", NAMES)
    assert not may_become_leak(CALL, NAMES)


HONEST = [
    "The value is 42.",
    "look_up",
    "I called look_up, and it is 42.",
    "Use the tool `look_up` with a key.",
    '{"name": "Ada", "born": 1815}',
    '{"name": "look_up", "kind": "tool"}',
    '{"name": "look_up", "parameters": ["key"]}',
    '[{"name": "Ada"}, {"name": "Grace"}]',
    '{"name": "another", "arguments": {}}',
    '{"arguments": {"key": "a"}}',
    "[1, 2, 3]",
    "[]",
    "{}",
    '{"a": 1',
    "[The docs](https://example.org) tell more.",
    "[TOOL_CALLS] is the token that Mistral's models write before a call.",
    "[x] done\n[ ] to do",
    "[INST] is how a turn begins.",
    "<tool_call> is the tag that Hermes models write, with JSON in it and a closing tag.",
    "<b>Bold</b> and <i>italic</i>.",
    "<p>It is 42.</p>",
    "<html><body><h1>Hello</h1></body></html>",
    "<answer>42</answer>",
    "<result><name>look_up</name><arguments>key</arguments></result>",
    "<?xml version='1.0'?><a/>",
    "<svg viewBox='0 0 1 1'><path d='M0 0'/></svg>",
    "<!-- a comment -->",
    '<invoice name="look_up"><parameter name="key">a</parameter></invoice>',
    "<function>look_up</function>",
    "<functions>\n<function name='look_up'/>\n</functions>",
    "<tools>look_up, send</tools>",
    "<tool>look_up</tool>",
    "<tool_calls>2</tool_calls>",
    "<think>Should I call look_up?</think>No. It is 42.",
    "<3 to you!",
    "< 3 is less than four >",
    "<<EOF\nhello\nEOF",
    "<|im_start|> begins a turn in ChatML.",
    "<https://example.org>",
    "<someone@example.org>",
    "to=functions is a field of the harmony format.",
    "to be or not to be",
    "To: functions.look_up",
    "commentary to the Gallic War",
    "commentary: he scored!",
    "functools.partial binds arguments.",
    "functools[0] is a TypeError.",
    "function look_up(key) { return 42; }",
    "```python\nlook_up('a')\n```",
    "look_up(key='a')",
    "print(look_up('a'))",
    "call:look_up",
    "call:look_up{key:a}",
    "Call me Ishmael.",
    "analysis to follow",
    "assistant: It is 42.",
    "$\\frac{a}{b}$ is the ratio.",
    "\\begin{tool_call}x\\end{tool_call}",
    "| name | arguments |\n|---|---|\n| look_up | key |",
    "# look_up\n\nLooks a key up.\n\n- key: text\n",
    "1. look_up\n2. send",
    "name: look_up\narguments:\n  key: a\n",
    "Roses are red,\n<violets> are blue,\n[brackets] are square,\nand {braces} are, too.",
    'Qwen writes `<tool_call>{"name": "look_up", "arguments": {}}</tool_call>` for a call.',
    f"Hermes:\n```xml\n<tool_call>{CALL}</tool_call>\n```\nLlama:\n```\n<|python_tag|>{LLAMA}\n```",
    f"```\n<tool_call>{CALL}</tool_call>\n```",
    f"    Indented:\n\n```json\n{CALL}\n```",
    f"First `<tool_call>` opens, then comes {CALL}.",
    "<tool_call> opens and </tool_call> closes.",
    "The log said: to=functions.look_up json{broken",
    "It ended in <|tool_call_end|>",
    "\u4f60\u597d\u3002",
    "\U0001f600",
    "...",
    "-",
]


def test_there_are_enough_honest_texts():
    assert len(set(HONEST)) >= 60


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_text_passes(text):
    assert not leaks_call(text, NAMES)
    assert not leaks_call(f"It is so.\n{text}", NAMES)
    assert not leaks_call(f"{text}\nIt is so.", NAMES)


OPENED = ("<tool_call> ", "[TOOL_CALLS] ", "functools[")


@pytest.mark.parametrize("text", [text for text in HONEST if not text.startswith(OPENED)])
def test_and_flows_from_its_first_characters(text):
    """Those that begin with an opener, as no call does, are held to their end and pass."""
    text = text.ljust(40, "~")
    flows = next(end for end in range(1, len(text)) if not may_become_leak(text[:end], NAMES))
    assert flows <= 25


@given(st.text(st.characters(exclude_characters="<[tcfu"), min_size=1).filter(str.strip))
def test_text_that_begins_with_no_opener_flows_at_once(text):
    assert not may_become_leak(text, NAMES)


@given(st.text())
def test_any_text_can_be_told(text):
    assert not leaks_call(text, NAMES)
    may_become_leak(text, NAMES)


def test_a_long_call_takes_no_longer_than_its_length():
    begun = time.process_time()
    text = f'<tool_call>{{"name": "look_up", "arguments": {{"key": "{"a" * 20_000}"}}}}</tool_call>'
    for end in range(len(text)):
        may_become_leak(text[:end], NAMES)
    assert leaks_call(text, NAMES)
    assert time.process_time() - begun < 10  # a second or two; a bound that only a fault reaches
