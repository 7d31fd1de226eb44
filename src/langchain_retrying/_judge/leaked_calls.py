"""Whether text is a tool call that a server's parser has not taken out of what a model wrote. Pure.

A call is never made of it. A false alarm is possible where an answer itself ends, unfenced, in a
well-formed call of a tool that is bound: it costs a spare request and a reworded answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple


class _Form(NamedTuple):
    """How a family writes one call."""

    head: str
    """Up to the arguments; a group is the tool's name, which otherwise stands in the JSON."""
    tail: str
    """After them; empty: the call ends with its JSON."""
    arguments: str = ""
    """Written in tags or so; empty: JSON."""


_DSML = "\uff5cDSML\uff5c"
_SEP, _FENCE = "<\uff5ctool\u2581sep\uff5c>", r"\s*```(?:json)?\s*"
_WORDS = "(?:<escape>.*?<escape>|[^{}<>])"  # of Gemma
_N = r"([\w.-]+?)"
_NAMESPACE = "antml:"
_TAG = rf"(?:{_DSML}|{_NAMESPACE})?"
_FORMS = (
    # Hermes, Qwen: huggingface.co/NousResearch/Hermes-3-Llama-3.1-8B, Qwen/Qwen3-8B
    _Form(r"<tool_call>\s*(?=\{)", r"\s*</tool_call>"),
    # Granite: huggingface.co/ibm-granite/granite-3.1-8b-instruct
    _Form(r"<tool_call>\s*(?=\[)", r"(?:\s*</tool_call>)?"),
    # Phi, as its model card has it: huggingface.co/microsoft/Phi-4-mini-instruct
    _Form(r"<\|tool_call\|>\s*(?=[\[{])", r"(?:\s*<\|/tool_call\|>)?"),
    _Form(r"functools\s*(?=\[)", ""),
    # Qwen3-Coder: huggingface.co/Qwen/Qwen3-Coder-480B-A35B-Instruct
    _Form(
        rf"(?:<tool_call>\s*)?<function={_N}>(?!\s*\{{)",
        r"\s*</function>(?:\s*</tool_call>)?",
        r"(?:\s*<parameter=[^<>]+>.*?</parameter>)*",
    ),
    # GLM; see huggingface.co/zai-org/GLM-4.5
    _Form(
        rf"<tool_call>\s*{_N}\s*(?=<arg_key>|</tool_call>)",
        r"\s*</tool_call>",
        r"(?:\s*<arg_key>.*?</arg_key>\s*<arg_value>.*?</arg_value>)*",
    ),
    # Kimi: huggingface.co/moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md
    _Form(
        rf"<\|tool_call_begin\|>\s*(?:functions\.)?{_N}(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*",
        r"\s*<\|tool_call_end\|>",
    ),
    # DeepSeek V3, R1, V3.1: huggingface.co/deepseek-ai/DeepSeek-V3.1
    _Form(
        rf"<\uff5ctool\u2581call\u2581begin\uff5c>(?:function{_SEP})?{_N}(?:{_SEP}|{_FENCE})",
        r"\s*(?:```)?\s*<\uff5ctool\u2581call\u2581end\uff5c>",
    ),
    # DeepSeek V3.2, MiniMax M2, Anthropic's style: huggingface.co/MiniMaxAI/MiniMax-M2
    _Form(
        rf'<{_TAG}invoke name="{_N}">',
        rf"\s*</{_TAG}invoke>",
        rf'(?:\s*<{_TAG}parameter name="[^"]+"[^<>]*>.*?</{_TAG}parameter>)*',
    ),
    # gpt-oss, whole and without its special tokens: github.com/openai/harmony, docs/format.md
    _Form(
        r"(?:<\|start\|>assistant)?(?:<\|channel\|>)?(?:commentary|analysis)?\s*"
        rf"to=functions\.{_N}\s*(?:<\|channel\|>(?:commentary|analysis))?\s*"
        r"(?:<\|constrain\|>)?(?:json)?\s*(?:<\|message\|>)?\s*(?=\{)",
        r"(?:\s*<\|call\|>)?",
    ),
    # Mistral: github.com/mistralai/mistral-common, tokens v3 to v13
    _Form(r"\[TOOL_CALLS\]\s*(?=\[)", ""),
    _Form(rf"\[TOOL_CALLS\]\s*{_N}(?:\[CALL_ID\]\w+)?\s*(?:\[ARGS\])?\s*(?=\{{)", ""),
    # Llama: github.com/meta-llama/llama-models, models/llama3_1/prompt_format.md
    _Form(r"<\|python_tag\|>\s*(?=[\[{])", ""),
    _Form(rf"<function={_N}>\s*(?=\{{)", r"\s*</function>"),
    # Gemma: ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices
    _Form(
        rf"<start_function_call>\s*call:{_N}(?=\{{)",
        r"\s*<end_function_call>",
        rf"\{{(?:{_WORDS}|\{{{_WORDS}*\}})*\}}",
    ),
)
# What some families put around their calls; what is opened there has to be closed.
_FRAMES = (
    (r"<\|tool_calls_section_begin\|>", r"<\|tool_calls_section_end\|>"),
    (r"<\uff5ctool\u2581calls\u2581begin\uff5c>", r"<\uff5ctool\u2581calls\u2581end\uff5c>"),
    (rf"<{_TAG}function_calls>", rf"</{_TAG}function_calls>"),
    (r"<minimax:tool_call>", r"</minimax:tool_call>"),
)
_OPENERS = (
    *(
        f"<{tag}"
        for tag in ("tool_call>", "function=", "minimax:tool_call>", "start_function_call>")
    ),
    *(f"<|{tag}" for tag in ("tool_call|>", "tool_calls_section_begin|>", "tool_call_begin|>")),
    *(f"<\uff5ctool\u2581{tag}\u2581begin\uff5c>" for tag in ("calls", "call")),
    *(f"<{_}{tag}" for _ in (_DSML, _NAMESPACE, "") for tag in ("function_calls>", "invoke ")),
    *("<|start|>assistant", "<|channel|>commentary to=", "commentary to=functions."),
    *("to=functions.", "<|python_tag|>", "[TOOL_CALLS]", "functools["),
)
"""How each of these begins."""
_HEADS = [re.compile(form.head) for form in _FORMS]
_ARGUMENTS = [re.compile(form.arguments, re.DOTALL) for form in _FORMS]
_TAILS = [re.compile(form.tail) for form in _FORMS]
_OPENER = re.compile("|".join(map(re.escape, _OPENERS)))
_FRAME = re.compile("|".join(f"({begun})|({ended})" for begun, ended in _FRAMES))
# What may stand between calls and behind them, such as a template's own tokens.
_SPACE = re.compile(
    r"(?:[\s,;]|</s>|<\|(?:im_end|eot_id|eom_id|end|endoftext)\|>|<end_of_turn>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>)*"
)
_UNFINISHED = re.compile(r"<[^<>\s]*")  # such as the end of a call, or a token
_FENCES = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)
_LOOKED_THROUGH = 4096
"""How many characters of a stream are looked through at each chunk; a longer one is at its end."""


def leaks_call(text: str, names: Collection[str], *, bare_json: bool = True) -> bool:
    """Whether a reply's text is, or ends in, calls of tools that are bound.

    Args:
        text: All of it.
        names: Of the tools that are bound.
        bare_json: Whether a call without any markup counts, if there is nothing else.

    """
    if not names:
        return False
    called, end = _json_calls(text, len(text) - len(text.lstrip()))
    if bare_json and _are_bound(called, names) and not text[end:].strip():
        return True
    for opener in _OPENER.finditer(text):
        called, end, depth = _calls_from(text, opener.start())
        if _are_bound(called, names) and end == len(text) and depth == 0:
            return not _is_quoted(text[: opener.start()])
    return False


def may_become_leak(text: str, names: Collection[str]) -> bool:
    """Whether a reply that begins with this text may yet turn out to be leaked calls.

    Args:
        text: All that has come of it.
        names: Of the tools that are bound.

    """
    text = text.lstrip()
    if not names or not _may_open(text):
        return False
    if len(text) > _LOOKED_THROUGH:
        return True
    called, end, _ = _calls_from(text, 0)
    rest = text[end:]
    goes_on = _may_open(rest) or _UNFINISHED.fullmatch(rest) is not None
    return not called or (_are_bound(called, names) and goes_on)


def _may_open(text: str) -> bool:
    """Whether text begins with an opener, or is the beginning of one."""
    return text.startswith(_OPENERS) or any(opener.startswith(text) for opener in _OPENERS)


def _calls_from(text: str, position: int) -> tuple[set[str], int, int]:
    """Names of tools called from a position on, where that ends, and how many frames are open."""
    called: set[str] = set()
    depth = 0
    while True:
        position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it always does
        frame = _FRAME.match(text, position)
        if frame is not None:
            depth += 1 if (frame.lastindex or 0) % 2 else -1
            position = frame.end()
            continue
        names, end = _call_at(text, position)
        if not names:
            return called, position, depth
        called, position = called | names, end


def _call_at(text: str, position: int) -> tuple[set[str], int]:
    """Names of tools called at a position, and where the call ends; no name: none is whole."""
    for form, head, arguments, tail in zip(_FORMS, _HEADS, _ARGUMENTS, _TAILS, strict=True):
        begun = head.match(text, position)
        if begun is None:
            continue
        if form.arguments:
            written = arguments.match(text, begun.end())
            names, end = ({begun[1]}, written.end()) if written else (set(), 0)
        elif begun.lastindex:
            value, end = _json_at(text, begun.end())
            names = {begun[1]} if isinstance(value, dict) else set()
        else:
            names, end = _json_calls(text, begun.end())
        ended = tail.match(text, end) if names else None
        if ended is not None:
            return names, ended.end()
    return set(), position


def _json_calls(text: str, position: int) -> tuple[set[str], int]:
    """Names of the tools that JSON calls: an object with a name and arguments, or several."""
    value, end = _json_at(text, position)
    names = set()
    for call in value if isinstance(value, list) else [value]:
        arguments = (
            call.get("arguments", call.get("parameters")) if isinstance(call, dict) else None
        )
        if not isinstance(arguments, (dict, str)) or not isinstance(call.get("name"), str):
            return set(), position
        names.add(call["name"])
    return names, end


def _json_at(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, position


def _are_bound(called: Collection[str], names: Collection[str]) -> bool:
    return bool(called) and {*called} <= {*names}


def _is_quoted(before: str) -> bool:
    """Whether what comes after this text stands in a code fence, or in inline code."""
    return bool(len(_FENCES.findall(before)) % 2 or before.rpartition("\n")[2].count("`") % 2)
