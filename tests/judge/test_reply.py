"""The judge, on whole messages and on every way of cutting them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk

from conftest import named
from langchain_retrying import ReplyKind, is_empty_ai_message, judge
from langchain_retrying._judge.finish_reasons import kind_of_end
from langchain_retrying._judge.kinds import NOTHING, Verdict
from langchain_retrying._judge.reply import ReplyJudge, examine
from langchain_retrying._judge.visible_text import VisibleText, is_plain_text

ANSWER, BLANK = ReplyKind.ANSWER, ReplyKind.BLANK
TRUNCATED, BLOCKED, MALFORMED = ReplyKind.TRUNCATED, ReplyKind.BLOCKED, ReplyKind.MALFORMED

USABLE = [
    "Hello",
    "…",
    "0",
    "<",
    "<thi",
    "<b>bold</b>",
    " \n.",
    "<think>plan</think>4",
    "<think>plan</think>\n\n<think>more</think> 4",
    "</think>\n\nThe answer",
    "Hello <think>Hm</think>",
    "Let me see.</think>4",
    "a</think>b</think>c",
    "<think>r</think>The answer is 42.</think>",
    "<think>r</think>The answer <think>is 42.</think>",
    "<thinking>a</thinking>b",
    "<thinker>",
    [{"type": "text", "text": "Hello"}],
    [{"text": "Hello"}],
    ["", "Hello"],
    [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "4"}],
    [{"type": "refusal", "refusal": "No."}],
    [{"type": "image_url", "image_url": {"url": "data:"}}],
    [{"type": "image", "base64": "AAAA"}],
    [{"type": "tool_use", "name": "f", "input": {}}],
    [{"type": "some_future_block"}],
    [{"some_future_key": 1}],
    [{"type": "non_standard", "value": {"type": "some_future_block"}}],
    [{"type": "executable_code", "executable_code": "print(4)"}],
    [{"type": "mcp_approval_request", "name": "do"}],
    [{"type": "output_text", "text": "Hello"}],
    [{"type": "text", "text": 4}],
    [{"text": 4}],
    [{"index": 0, "some_future_key": 1}],
    [{"type": 4}],
    [{"type": "image", "base64": "AAAA"}, {"type": "thinking", "thinking": "Hm"}],
    "<thought>plan</thought>4",
    "[THINK]plan[/THINK]4",
    "◁think▷plan◁/think▷4",
    '<think type="cot">plan</think>4',
    "<think/>4",
    "<thinking hard> is not",
    "[think]",
    "[1]",
    "[DONE]",
    "<section>",
    "4</s>",
    "<|im_end|>4",
    "<|",
    "<|im_start|>assistant\n4<|im_end|>",
    "<|start_header_id|>assistant<|end_header_id|>\n\n4<|eot_id|>",
    "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>4",
    "<|channel|>final<|message|>4<|return|>",
    "<|channel|>commentary to=f<|message|>{}<|call|>",
    "<reasoning-panel>4</reasoning-panel>",
    "<final_thoughts>4</final_thoughts>",
    "<critical-thinking>4</critical-thinking>",
    "<start_of_the_day>",
    "<|im_start|> marks the start of a turn.",
    "<|start|>Hello there",
    f"<|{'a' * 200}|>",
    f'<think a="{"a" * 200}">4',
]
NOT_USABLE = [
    "<thought>plan</thought>",
    "<seed:think>plan</seed:think>\n",
    "<thoughts>plan",
    "<chain_of_thought>plan</chain_of_thought>",
    "[THINK]plan[/THINK]\n",
    "plan[/THINK]",
    "plan◁/think▷\n",
    "◁think▷plan◁/think▷",
    '<think type="cot">plan</think>',
    "<think a='b' c=d >plan",
    "</s>",
    "<s>",
    "<end_of_turn>",
    "[INST]",
    "<|im_end|>",
    "<|endoftext|>\n",
    "<\uff5cend▁of▁sentence\uff5c>",
    "<|start|>assistant",
    "<|im_start|>assistant\n<|im_end|>",
    "<|start_header_id|>assistant<|end_header_id|>\n\n<|eot_id|>",
    "<|channel|>analysis<|message|>plan<|end|>",
    "<|channel|>analysis<|message|>cut off",
    "<|channel|>analysis<|message|>cut off <",
    "<|channel|>analysis to=python code<|message|>4",
    "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>",
    [{"type": "text", "text": "<seed:th"}, {"type": "text", "text": "ink>plan"}],
    [{"type": "server_tool_use", "name": "text_editor_code_execution"}],
    [{"type": "server_tool_call", "name": "mcp_list_tools"}],
    [{"type": "server_tool_call_chunk", "args": "{}"}],
    "",
    [],
    " \t\r\n\u00a0",
    "\u200b\u200c\u200d\u2060\ufeff",
    "\u115f\u1160\u3164\uffa0",
    "\u3164",
    "\x00\x07",
    "<think>\nHm</think>\n\n",
    "<think>unclosed",
    "<think>a</think><think>b",
    "</think>\n",
    "Let me see.</think>\n",
    "a</think>b</think>",
    " <THINKING>a</thinking>",
    "<reasoning>a</reasoning>",
    "<think></thi",
    [{"type": "text", "text": ""}],
    [{"type": "text", "text": "\n", "annotations": []}],
    [{"type": "text", "text": "", "extras": {"signature": "c2ln"}, "index": 0}],
    [{"type": "text", "text": "<think>a"}, {"type": "text", "text": "b</think> "}],
    [{"type": "thinking", "thinking": "Hm", "signature": "c2ln"}],
    [{"type": "redacted_thinking", "data": "b3Bh"}],
    [{"type": "reasoning", "summary": []}],
    [{"type": "reasoning_content", "reasoning_content": {"text": "Hm"}}],
    [{"reasoning_content": {"text": "Hm"}}],
    [{"type": "non_standard", "value": {"type": "redacted_thinking", "data": "b3Bh"}}],
    [{"type": "server_tool_use", "name": "web_search"}],
    [{"type": "web_search_call", "status": "completed"}],
    [{"type": "web_search_tool_result", "content": []}],
    [{"type": "code_interpreter_call", "outputs": []}],
    [{"index": 0}],
    [{}],
    [{"type": "text", "text": None}],
    [{"type": "text"}],
    [{"type": "output_text", "text": " "}],
    [{"text": None}],
    [{"text": "\n"}],
    [{"text": "<think>Hm"}],
    [
        {
            "type": None,
            "index": 1,
            "id": "a",
            "extras": {"a": 1},
            "signature": "a",
            "annotations": [1],
        }
    ],
    [{"type": "non_standard"}],
    [{"some_future_key": None}],
]


def test_kinds_are_told_in_metadata_by_these_words():
    assert [kind.value for kind in ReplyKind] == [
        "answer",
        "blank",
        "truncated",
        "blocked",
        "malformed",
    ]


@pytest.mark.parametrize("content", USABLE, ids=repr)
def test_usable_content_is_an_answer_whatever_the_reason(content):
    for reason in (None, "stop", "length", "content_filter", "MALFORMED_FUNCTION_CALL"):
        message = AIMessage(content=content, response_metadata={"finish_reason": reason})
        assert judge(message) is ANSWER
        assert not is_empty_ai_message(message)


@pytest.mark.parametrize("content", NOT_USABLE, ids=repr)
def test_content_without_use_is_empty(content):
    message = AIMessage(content=content, response_metadata={"finish_reason": "stop"})
    assert judge(message) is BLANK
    assert is_empty_ai_message(message)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"tool_calls": [{"name": "f", "args": {}, "id": "1"}]}, ANSWER),
        ({"additional_kwargs": {"function_call": {"name": "f", "arguments": "{}"}}}, ANSWER),
        ({"additional_kwargs": {"refusal": "I can't."}}, ANSWER),
        ({"additional_kwargs": {"audio": {"id": "a"}}}, ANSWER),
        ({"additional_kwargs": {"parsed": {"a": 1}}}, ANSWER),
        ({"additional_kwargs": {"some_future_key": {"a": 1}}}, ANSWER),
        ({"additional_kwargs": {"some_future_key": 1}}, BLANK),
        ({"additional_kwargs": {"time_created": "1", "is_byok": True, "cost": 0.1}}, BLANK),
        ({"additional_kwargs": {"function_call": "f"}}, ANSWER),
        ({"additional_kwargs": {"images": "data:"}}, ANSWER),
        ({"additional_kwargs": {"preferences": [1], "resources": [1]}}, ANSWER),
        ({"additional_kwargs": {"extra_content": {"google": {"thought_signature": "a"}}}}, BLANK),
        ({"additional_kwargs": {"provider_specific_fields": {"thinking_blocks": [1]}}}, BLANK),
        ({"additional_kwargs": {"provider_specific_fields": {"canvas": [1]}}}, ANSWER),
        (
            {"additional_kwargs": {"executed_tools": [{"type": "search"}, {"name": "python"}]}},
            BLANK,
        ),
        ({"additional_kwargs": {"executed_tools": [{"arguments": "{}"}, None]}}, BLANK),
        ({"additional_kwargs": {"executed_tools": [{"type": "search", "name": "send"}]}}, ANSWER),
        ({"additional_kwargs": {"executed_tools": [{"type": "send"}]}}, ANSWER),
        ({"additional_kwargs": {"executed_tools": {"a": 1}}}, ANSWER),
        ({"additional_kwargs": {"tool_outputs": [{"type": "mcp_call", "name": "send"}]}}, ANSWER),
        ({"additional_kwargs": {"provider_specific_fields": {"refusal": None}}}, BLANK),
        ({"additional_kwargs": {"provider_specific_fields": {"reasoning_content": "Hm"}}}, BLANK),
        ({"additional_kwargs": {"provider_specific_fields": {"refusal": "No."}}}, ANSWER),
        ({"additional_kwargs": {"citations": ["https://example.org"]}}, BLANK),
        ({"additional_kwargs": {"tool_outputs": [{"type": "image_generation_call"}]}}, ANSWER),
        ({"additional_kwargs": {"tool_outputs": [{"type": "web_search_call"}]}}, BLANK),
        ({"additional_kwargs": {"refusal": None, "parsed": None}}, BLANK),
        ({"additional_kwargs": {"reasoning_content": "Hm"}}, BLANK),
        ({"additional_kwargs": {"reasoning": {"summary": []}, "reasoning_details": [{}]}}, BLANK),
        ({"additional_kwargs": {"token_count": {"input_tokens": 3}}}, BLANK),
        ({"additional_kwargs": {"refusal": None, "audio": {"id": "a"}}}, ANSWER),
        ({"additional_kwargs": {"token_count": {"a": 3}, "audio": {"id": "a"}}}, ANSWER),
        ({"additional_kwargs": {"tool_outputs": {"type": "web_search_call"}}}, ANSWER),
        ({"additional_kwargs": {"some_future_key": [{"type": "web_search_call"}]}}, ANSWER),
        ({"additional_kwargs": {"some_future_key": {"refusal": None}}}, ANSWER),
        ({"additional_kwargs": {"provider_specific_fields": [None]}}, ANSWER),
    ],
)
def test_what_stands_beside_the_content(fields, kind):
    assert judge(AIMessage(content="", **fields)) is kind


@pytest.mark.parametrize("chunked", [False, True])
def test_a_tool_call_counts(chunked):
    message = (AIMessageChunk if chunked else AIMessage)(
        "", tool_calls=[{"name": "f", "args": {}, "id": "1"}]
    )
    assert examine(message) == Verdict(ANSWER, seen=frozenset({"tool calls"}))
    both = message.model_copy(update={"invalid_tool_calls": [INVALID]})
    assert examine(both) == Verdict(ANSWER, seen=frozenset({"tool calls"}))


INVALID = {"name": "f", "args": "{", "id": "1", "error": None, "type": "invalid_tool_call"}
FUNCTION_CALL = {"type": "function_call", "name": "f", "arguments": "{"}


@pytest.mark.parametrize(
    ("content", "reason", "kind"),
    [
        ("", "stop", MALFORMED),
        ("", None, MALFORMED),
        ("", "tool_calls", MALFORMED),
        ("", "length", TRUNCATED),
        ("", "content_filter", BLOCKED),
        (" ", "stop", MALFORMED),
        ([INVALID], "stop", MALFORMED),
        ([FUNCTION_CALL], "stop", MALFORMED),
        ([{"type": "image"}], "stop", ANSWER),
        ("I shall look it up.", "stop", ANSWER),
    ],
    ids=named,
)
@pytest.mark.parametrize("cls", [AIMessage, AIMessageChunk])
def test_tool_calls_that_do_not_parse_are_no_answer_by_themselves(cls, content, reason, kind):
    metadata = {"finish_reason": reason}
    message = cls(content, invalid_tool_calls=[INVALID], response_metadata=metadata)
    assert judge(message) is kind
    assert "invalid tool calls" in examine(message).seen


def test_a_block_of_a_call_counts_where_nothing_says_that_it_is_invalid():
    assert judge(AIMessage([FUNCTION_CALL])) is ANSWER


@pytest.mark.parametrize(
    "kind", ["thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought"]
)
def test_a_block_of_reasoning_with_its_type_or_without(kind):
    for block in ({"type": kind, "a": 1}, {kind: "Hm"}):
        assert examine(AIMessage([block])).seen == {"reasoning"}
        assert judge(AIMessage([block])) is BLANK


@pytest.mark.parametrize(
    "kind",
    [
        "server_tool_use",
        "server_tool_call",
        "server_tool_call_chunk",
        "server_tool_result",
        "mcp_list_tools",
        "web_search_call",
        "file_search_call",
        "x_search_call",
        "code_interpreter_call",
        "input_json_delta",
        "web_fetch_tool_result",
        "bash_code_execution_tool_result",
    ],
)
def test_a_block_of_a_tool_that_runs_at_the_provider_is_no_answer(kind):
    verdict = examine(AIMessage([{"type": kind, "a": 1}]))
    assert verdict == Verdict(BLANK, seen=frozenset({"server tools"}))


@pytest.mark.parametrize(
    ("block", "seen"),
    [
        ({"type": "mcp_call", "name": "search_and_send"}, "mcp_call"),
        ({"type": "mcp_tool_use", "name": "search"}, "mcp_tool_use"),
        ({"type": "mcp_tool_result"}, "mcp_tool_result"),
        ({"type": "server_tool_use", "name": "send_mail"}, "send_mail"),
        ({"type": "server_tool_call", "name": "remote_mcp"}, "remote_mcp"),
        ({"type": "some_future_tool_result"}, "some_future_tool_result"),
    ],
    ids=repr,
)
def test_a_turn_that_may_have_acted_is_not_made_to_act_again(block, seen):
    for reason in ("end_turn", "max_tokens", "refusal"):
        message = AIMessage([block], response_metadata={"stop_reason": reason})
        assert examine(message) == Verdict(ANSWER, reason, "stop_reason", frozenset({seen}))


THINKING_KEYS = [
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_items",
    "reasoning_steps",
    "reasoningContent",
    "_reasoning_api_fields",
    "reasons",
    "thinking",
    "thinking_blocks",
    "thinkingContent",
    "thought",
    "thoughts",
    "chain_of_thought",
    "rationale",
    "inner_monologue",
    "scratchpad",
]
SOURCE_KEYS = [
    "citations",
    "url_citations",
    "sources",
    "search_results",
    "searchQueries",
    "web_search",
    "related_questions",
    "references",
    "documents",
    "grounding_metadata",
    "groundingChunks",
    "annotations",
]


@pytest.mark.parametrize("key", THINKING_KEYS)
@pytest.mark.parametrize("value", ["Hm", [{"text": "Hm"}], {"a": {"b": 1}}, 3], ids=repr)
def test_reasoning_beside_the_content(key, value):
    verdict = examine(AIMessage("", additional_kwargs={key: value}))
    assert verdict == Verdict(BLANK, seen=frozenset({"reasoning"}))


@pytest.mark.parametrize(
    "key",
    [
        *SOURCE_KEYS,
        "signature",
        "thought_signature",
        "__gemini_function_call_thought_signatures__",
        "__openai_function_call_ids__",
        "id",
        "usage",
        "token_count",
        "prompt_token_ids",
        "logprobs",
        "finish_reason",
        "stop_reasons",
    ],
)
@pytest.mark.parametrize("value", ["a", [1], {"a": 1}], ids=repr)
def test_notes_about_a_reply_are_nothing_that_was_seen(key, value):
    assert examine(AIMessage("", additional_kwargs={key: value})) == NOTHING


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({}, BLANK),
        ({"finish_reason": None}, BLANK),
        ({"finish_reason": "stop"}, BLANK),
        ({"finish_reason": "stopstop"}, BLANK),
        ({"finish_reason": "SOME_FUTURE_REASON"}, BLANK),
        ({"finish_reason": 3}, BLANK),
        ({"finish_reason": "length"}, TRUNCATED),
        ({"finish_reason": "lengthlength"}, TRUNCATED),
        ({"finish_reason": "MAX_TOKENS"}, TRUNCATED),
        ({"finish_reason": "model_length"}, TRUNCATED),
        ({"stop_reason": "max_tokens"}, TRUNCATED),
        ({"stop_reason": "model_context_window_exceeded"}, TRUNCATED),
        ({"stopReason": "max_tokens"}, TRUNCATED),
        ({"done_reason": "length"}, TRUNCATED),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            TRUNCATED,
        ),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, BLOCKED),
        ({"status": "incomplete", "incomplete_details": None}, TRUNCATED),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, TRUNCATED),
        ({"incomplete_details": {"reason": None}}, BLANK),
        ({"incomplete_details": {"reason": ["max_output_tokens"]}}, BLANK),
        ({"finish_reason": "max_new_tokens"}, TRUNCATED),
        ({"finish_reason": "token_limit"}, TRUNCATED),
        ({"finish_reason": "reasoning_budget"}, TRUNCATED),
        ({"finish_reason": "content_filter"}, BLOCKED),
        ({"finish_reason": "SAFETY"}, BLOCKED),
        ({"finish_reason": "LANGUAGE"}, BLOCKED),
        ({"finish_reason": "MODEL_ARMOR"}, BLOCKED),
        ({"finish_reason": "unsafe"}, BLOCKED),
        ({"finish_reason": "ERROR_TOXIC"}, BLOCKED),
        ({"finish_reason": "ERROR_LIMIT"}, TRUNCATED),
        ({"incomplete_details": {"reason": "max_tool_calls"}}, TRUNCATED),
        ({"status": "requires_action"}, ANSWER),
        ({"finish_reason": "JAILBREAK"}, BLOCKED),
        ({"finish_reason": "BLOCKLIST"}, BLOCKED),
        ({"finish_reason": "PROHIBITED_CONTENT"}, BLOCKED),
        ({"finish_reason": "RECITATION"}, BLOCKED),
        ({"finish_reason": "SPII"}, BLOCKED),
        ({"finish_reason": "sensitive"}, BLOCKED),
        ({"finish_reason": "moderation"}, BLOCKED),
        ({"finish_reason": "policy_violation"}, BLOCKED),
        ({"stop_reason": "refusal"}, BLOCKED),
        ({"stopReason": "guardrail_intervened"}, BLOCKED),
        ({"prompt_feedback": {"block_reason": "SAFETY"}}, BLOCKED),
        ({"prompt_feedback": {"block_reason": "OTHER"}}, BLOCKED),
        ({"prompt_feedback": {"block_reason": "SOME_FUTURE_REASON"}}, BLOCKED),
        ({"promptFeedback": {"blockReason": "OTHER"}}, BLOCKED),
        ({"prompt_feedback": {"block_reason": "BLOCKED_REASON_UNSPECIFIED"}}, BLANK),
        ({"prompt_feedback": {"safety_ratings": []}}, BLANK),
        ({"completionReason": "CONTENT_FILTERED"}, BLOCKED),
        ({"completionReason": "LENGTH"}, TRUNCATED),
        ({"finish_reason": "stop", "native_finish_reason": "MAX_TOKENS"}, TRUNCATED),
        ({"finish_reason": "error", "native_finish_reason": "MALFORMED_RESPONSE"}, MALFORMED),
        ({"incompleteDetails": {"reason": "max_output_tokens"}}, TRUNCATED),
        ({"usage": {"reason": "length"}, "reasoning": "length"}, BLANK),
        ({4: "length"}, BLANK),
        ({"finish_reason": "MALFORMED_FUNCTION_CALL"}, MALFORMED),
        ({"finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"}, MALFORMED),
        ({"finish_reason": "UNEXPECTED_TOOL_CALL"}, MALFORMED),
        ({"stopReason": "malformed_tool_use"}, MALFORMED),
        ({"stopReason": "malformed_model_output"}, MALFORMED),
        ({"finish_reason": "function_call"}, MALFORMED),
        ({"finish_reason": "too_many_tools"}, MALFORMED),
        ({"finish_reason": "invalid_tool"}, MALFORMED),
        ({"finish_reason": "tool_calls"}, MALFORMED),
        ({"stop_reason": "tool_use"}, MALFORMED),
        ({"stop_reason": "pause_turn"}, ANSWER),
        ({"status": "queued"}, ANSWER),
        ({"status": "in_progress"}, ANSWER),
        ({"status": "completed"}, BLANK),
        ({"status": "in_progresscompleted"}, BLANK),
    ],
    ids=repr,
)
def test_reasons_tell_the_kinds_of_empty_reply_apart(metadata, kind):
    assert judge(AIMessage(content="", response_metadata=metadata)) is kind


@pytest.mark.parametrize("spelling", ["MAX_TOKENS", "max_tokens", "maxTokens", "Max tokens"])
def test_a_reason_is_known_however_it_is_spelt(spelling):
    assert kind_of_end("finish_reason", spelling) is TRUNCATED
    assert kind_of_end("finish_reason", "stop") is BLANK


@pytest.mark.parametrize(
    ("metadata", "verdict"),
    [
        ({"finish_reason": "tool_use", "stop_reason": "refusal"}, (MALFORMED, "tool_use")),
        ({"finish_reason": "refusal", "stop_reason": "length"}, (BLOCKED, "refusal")),
        ({"finish_reason": "SAFETY", "stop_reason": "refusal"}, (BLOCKED, "refusal")),
        ({"finish_reason": "length", "stop_reason": "pause_turn"}, (TRUNCATED, "length")),
        ({"finish_reason": "stop", "stop_reason": "pause_turn"}, (ANSWER, "pause_turn")),
        ({"finish_reason": "stop", "status": "completed"}, (BLANK, "completed")),
    ],
    ids=repr,
)
def test_of_several_reasons_the_one_that_says_most_decides(metadata, verdict):
    (key,) = [key for key, word in metadata.items() if word == verdict[1]]
    assert examine(AIMessage("", response_metadata=metadata)) == Verdict(*verdict, key)


def test_reasons_beside_the_message_count_too():
    verdict = examine(AIMessage(""), {"finish_reason": "length"})
    assert verdict == Verdict(TRUNCATED, "length", "finish_reason")


def test_the_verdict_on_an_answer_tells_its_reason():
    message = AIMessage("a", response_metadata={"stop_reason": "end_turn"})
    assert examine(message) == Verdict(ANSWER, "end_turn", "stop_reason", frozenset({"text"}))
    assert examine(message).is_answer
    assert not NOTHING.is_answer


@pytest.mark.parametrize("text", ["Hello", "Hello <b>"])
@pytest.mark.parametrize(("reason", "kind"), [("stop", MALFORMED), ("length", TRUNCATED)])
def test_text_is_of_no_use_where_a_tool_call_is_required(text, reason, kind):
    reply = ReplyJudge(text_counts=False)
    assert not reply.add(AIMessageChunk(text, response_metadata={"finish_reason": reason}))
    assert reply.verdict() == Verdict(kind, reason, "finish_reason", frozenset({"text"}))
    assert reply.add(AIMessageChunk("").model_copy(update={"tool_calls": [{"name": "f"}]}))
    assert reply.verdict().is_answer
    blank = ReplyJudge(text_counts=False)
    blank.add(AIMessageChunk(" "))
    assert blank.verdict().kind is BLANK


def test_a_verdict_does_not_weigh_on_the_next():
    judge_ = ReplyJudge()
    judge_.add(AIMessageChunk(" "))
    assert judge_.verdict() == Verdict(BLANK, seen=frozenset({"blank text"}))
    judge_.add(AIMessageChunk("a"))
    assert judge_.verdict() == Verdict(ANSWER, seen=frozenset({"text"}))


def test_the_verdict_carries_its_evidence():
    message = AIMessage(
        content=[{"type": "thinking", "thinking": "Hm"}, {"type": "server_tool_use"}],
        response_metadata={"finish_reason": "MAX_TOKENS"},
    )
    verdict = examine(message)
    assert verdict == Verdict(
        TRUNCATED, "MAX_TOKENS", "finish_reason", frozenset({"reasoning", "server tools"})
    )


@pytest.mark.parametrize(
    ("message", "seen"),
    [
        (AIMessage(""), set()),
        (AIMessage("a"), {"text"}),
        (AIMessage(" "), {"blank text"}),
        (AIMessage("<think>a"), {"blank text", "reasoning"}),
        (AIMessage("<think>a</think>b"), {"text", "reasoning"}),
        (AIMessage([{"type": "image_url"}, {"type": "text", "text": "a"}]), {"image_url", "text"}),
        (AIMessage([{"x": 1}]), {"x"}),
        (AIMessage([{4: 1}]), {"4"}),
        (AIMessage([{"x": 1, "thinking": "a", "text": "b"}]), {"x", "reasoning", "text"}),
        (
            SimpleNamespace(content=4, additional_kwargs={5: [1]}, response_metadata={}),
            {"int", "5"},
        ),
        (AIMessage([{"type": "non_standard", "value": {"type": "x"}}]), {"x"}),
        (AIMessage("", additional_kwargs={"refusal": "No.", "reasoning": "a"}), None),
        (AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]), {"tool calls"}),
    ],
)
def test_the_evidence_says_what_was_seen(message, seen):
    assert examine(message).seen == ({"refusal", "reasoning"} if seen is None else seen)


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        ({"stopReason": "end_turn"}, "stopReason"),
        ({"prompt_feedback": {"block_reason": "SAFETY"}}, "prompt_feedback.block_reason"),
        ({"finish_reason": "stop", "stop_reason": "max_tokens"}, "stop_reason"),
        ({"stop_reason": None}, None),
        ({"finish_reason": ""}, None),
        ({"stop_reason": "end_turn", "status": ""}, "stop_reason"),
        ({"stop_reason": "end_turn", "incomplete_details": {"reason": ""}}, "stop_reason"),
    ],
)
def test_the_evidence_says_where_the_reason_stood(metadata, key):
    assert examine(AIMessage("", response_metadata=metadata)).finish_reason_key == key


def test_anything_of_the_shape_of_a_message_can_be_judged():
    shape = SimpleNamespace(content=None, additional_kwargs=None, response_metadata=None)
    assert judge(shape) is BLANK
    shape.content = {"type": "text", "text": "Hello"}
    assert judge(shape) is ANSWER
    for nothing in (0, [0], [None], [{"type": "non_standard", "value": 0}]):
        shape.content = nothing
        assert judge(shape) is BLANK
    for something in (42, [42]):
        shape.content = something
        assert judge(shape) is ANSWER


@pytest.mark.parametrize(
    ("chunks", "usable"),
    [
        (["Hello", " "], [True, True]),
        (["", " ", "a"], [False, False, True]),
        ([" ", "Hello", ""], [False, True, True]),
        (["Hello", "</think>", "a"], [True, False, True]),
        (["<thi", "nk>a", "</think>", "b"], [False, False, False, True]),
        ([[{"type": "thinking"}], [{"type": "image"}], ""], [False, True, True]),
        ([[{"type": "image"}], [{"type": "thinking"}]], [True, True]),
    ],
    ids=repr,
)
def test_a_stream_may_flow_once_something_usable_has_come(chunks, usable):
    judge_ = ReplyJudge()
    assert [judge_.add(AIMessageChunk(content)) for content in chunks] == usable
    judge_ = ReplyJudge()
    assert [judge_.add_content(content) for content in chunks] == usable


@pytest.mark.parametrize(
    ("content", "plain"),
    [
        ("Hello there", True),
        ("a.", True),
        ("4", True),
        ("", False),
        (" a", False),
        ("a<b", False),
        ("a<", False),
        ("a[b", False),
        ("a◁b", False),
        ("a> b] c▷", True),
        (["a"], False),
        (None, False),
        *((f"{filler}a", False) for filler in "\u115f\u1160\u3164\uffa0"),
    ],
)
def test_only_text_that_needs_no_closer_look_is_plain(content, plain):
    assert is_plain_text(content) is plain


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("\x00", "\x1f"),
        ("\x7f", "\x9f"),
        ("\u00ad", "\u00ad"),
        ("\u034f", "\u034f"),
        ("\u061c", "\u061c"),
        ("\u115f", "\u1160"),
        ("\u17b4", "\u17b5"),
        ("\u180b", "\u180f"),
        ("\u200b", "\u200f"),
        ("\u2028", "\u202e"),
        ("\u2060", "\u206f"),
        ("\u2800", "\u2800"),
        ("\u3164", "\u3164"),
        ("\ufe00", "\ufe0f"),
        ("\ufeff", "\ufeff"),
        ("\uffa0", "\uffa0"),
        ("\ufff9", "\ufffb"),
        ("\U000e0000", "\U000e0fff"),
    ],
    ids=ascii,
)
def test_characters_that_show_nothing_and_their_neighbours_that_do(first, last):
    hidden = [chr(code) for code in range(ord(first), ord(last) + 1)]
    assert not any(VisibleText().add(char) for char in hidden)
    before, after = chr(max(0x21, ord(first) - 1)), chr(ord(last) + 1)
    for neighbour in (before, after):
        assert VisibleText().add(neighbour) is not neighbour.isspace()


@pytest.mark.parametrize(
    ("pieces", "visible", "at_end"),
    [
        (["<", "b"], [False, False], True),
        (["<", "b", ">"], [False, False, True], True),
        (["< ", "b"], [True, True], True),
        (["<seed", ":thi", "nk>a"], [False] * 3, False),
        (["[", "THINK", "]a[/", "THINK]"], [False] * 4, False),
        (["[", "{"], [False, True], True),
        (["◁", "think▷a"], [False, False], False),
        (["<|im_", "end|>", "a"], [False, False, True], True),
        (["<|start|>", "assis", "tant", "<|message|>a"], [False] * 3 + [True], True),
        (["<|im_start|>", "user", "\n", "a"], [False] * 3 + [True], True),
        (["<|channel|>ana", "lysis<|message|>", "a", "<|end|>", "b"], [False] * 4 + [True], True),
        (["<" + "b" * 200, "b"], [True, True], True),
        (["<"], [False], True),
        (["a<"], [True], True),
        (["<think>a<"], [False], False),
        (["<think>", "</think", ">", "<"], [False] * 4, True),
        (["a</reasoning", ">"], [True, False], False),
        (["</reasoning", ">b"], [False, True], True),
        (["a", "</think>"], [True, False], False),
        (["a", "<think>", "</think>"], [True, True, True], True),
        ([" <think>", "a</think> <think>b", "</think>"], [False] * 3, False),
        (["<think>a</think>b", "</think>"], [True, True], True),
        (["<", "<think>"], [False, True], True),
        (["<<think", ">"], [True, True], True),
        (["<THINK", "ING>a"], [False, False], False),
        (["<think ", "a"], [False, False], True),
        (["<think ", 'a="b"', ">c"], [False] * 3, False),
        (["<think ", "a>"], [False, True], True),
    ],
    ids=repr,
)
def test_a_tag_in_pieces(pieces, visible, at_end):
    text = VisibleText()
    assert [text.add(piece) for piece in pieces] == visible
    assert text.at_end() is at_end


@pytest.mark.parametrize(
    ("text", "saw_reasoning"),
    [
        ("a", False),
        ("<thinks>", False),
        ("<think>", True),
        ("</think>", True),
        ("<thi", False),
        ("<think/>", False),
        ("[THINK]", True),
        ("<|im_end|>", False),
        ("<|channel|>final<|message|>a<|end|>", False),
        ("<|channel|>analysis<|message|>a<|end|>", True),
        ("<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>", True),
    ],
)
def test_a_tag_tells_of_reasoning(text, saw_reasoning):
    seen = VisibleText()
    seen.add(text)
    assert seen.saw_reasoning is saw_reasoning


def cut(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


TEXTS = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<THINKING>", "</thinking>", "<", "</", "thi", "nk>", ">", " "]
        + ["\n", "\u200b", "a", "b<", "<thinks>", "[THINK]", "[/THINK]", "[", "◁think▷"]
        + ["◁/think▷", '<think a="b">', "<seed:think>", "<think ", "</s>", "<|im_start|>user"]
        + ["<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|end|>", "|>", "<|"]
    ),
    max_size=8,
).map("".join)
CUTS = st.lists(st.integers(0, 60), max_size=8)


def verdict_of(chunks: list[Any]):
    judge_ = ReplyJudge()
    for chunk in chunks:
        judge_.add(chunk)
    return judge_.verdict()


@given(TEXTS, CUTS)
def test_however_text_is_cut_the_verdict_is_the_same(text, cuts):
    whole = examine(AIMessage(content=text))
    chunked = verdict_of([AIMessageChunk(content=piece) for piece in cut(text, cuts)])
    assert chunked.kind is whole.kind
    blocks = [AIMessageChunk(content=[{"type": "text", "text": p}]) for p in cut(text, cuts)]
    assert verdict_of(blocks).kind is whole.kind


BLOCKS = st.sampled_from([*[b for b in USABLE + NOT_USABLE if isinstance(b, list)]])


@given(st.lists(BLOCKS, max_size=4), st.sampled_from([None, "stop", "length", "tool_calls"]))
def test_however_blocks_are_cut_the_verdict_is_the_same(parts, reason):
    metadata = {"finish_reason": reason} if reason else {}
    whole = AIMessage(content=sum(parts, []), response_metadata=metadata)
    chunks = [AIMessageChunk(content=[block]) for part in parts for block in part]
    chunks.append(AIMessageChunk(content="", response_metadata=metadata))
    assert verdict_of(chunks).kind is judge(whole)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "thinking", "value", "x", "status", "reason", "block_reason"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    JSON,
    JSON.filter(lambda j: j is None or isinstance(j, dict)),
    st.dictionaries(
        st.sampled_from(["finish_reason", "status", "incomplete_details", "prompt_feedback"]), JSON
    ),
)
def test_nothing_makes_the_judge_raise(content, additional_kwargs, metadata):
    shape = SimpleNamespace(
        content=content, additional_kwargs=additional_kwargs, response_metadata=metadata
    )
    assert judge(shape) in ReplyKind


@given(st.sampled_from(USABLE), st.lists(st.sampled_from(NOT_USABLE), max_size=3), st.booleans())
def test_what_holds_anything_usable_is_never_empty(usable, others, last):
    def blocks(content):
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    # A tag beside it may rightly take the usable text for reasoning.
    others = [
        other for other in others if not any(opener in str(other) for opener in ("<", "THINK", "◁"))
    ]
    before, after = ([], others) if last else (others, [])
    content = sum(map(blocks, [*before, usable, *after]), [])
    assert judge(AIMessage(content=content)) is ANSWER


@pytest.mark.parametrize("unit", ["think-", "think_", "a:", "a-b:", '<think a="b" ', "</think "])
def test_a_tag_that_never_ends_is_looked_at_in_passing(unit):
    """In time that is linear in its length; else this would take hours."""
    assert judge(AIMessage(f"<{unit * 100_000}")) is ANSWER


@given(st.sampled_from([text for text in USABLE + NOT_USABLE if isinstance(text, str)]), CUTS)
def test_each_way_of_thinking_in_the_text_is_known_at_every_cut(text, cuts):
    kind = verdict_of([AIMessageChunk(content=piece) for piece in cut(text, cuts)]).kind
    assert (kind is ANSWER) is (text in USABLE)


SCALARS = st.text() | st.integers() | st.floats() | st.booleans() | st.none()
NOT_OUTPUT = st.dictionaries(st.sampled_from(THINKING_KEYS + SOURCE_KEYS), JSON) | st.dictionaries(
    st.text().filter(lambda key: key not in OUTPUT), SCALARS
)
OUTPUT = {
    "tool_calls": [{"id": "1"}],
    "function_call": {"name": "f"},
    "refusal": "No.",
    "audio": {"id": "a"},
    "image": "data:",
    "images": ["data:"],
    "videos": ["data:"],
    "files": [{"id": "a"}],
    "parsed": {"a": 1},
    "canvas": {"a": 1},
    "widgets": [1],
}


@given(NOT_OUTPUT, st.sampled_from([item for item in NOT_USABLE if item]))
def test_scalars_and_thinking_beside_the_content_are_never_an_answer(additional_kwargs, content):
    assert judge(AIMessage(content, additional_kwargs=additional_kwargs)) is BLANK
    nested = {"provider_specific_fields": additional_kwargs}
    assert judge(AIMessage("", additional_kwargs=nested)) is BLANK


@given(NOT_OUTPUT, st.sampled_from(sorted(OUTPUT)), st.booleans(), st.booleans())
def test_output_beside_the_content_is_always_an_answer(others, key, first, nested):
    output = {key: OUTPUT[key]}
    additional_kwargs = {**output, **others} if first else {**others, **output}
    if nested:
        additional_kwargs = {"provider_specific_fields": additional_kwargs}
    assert judge(AIMessage("", additional_kwargs=additional_kwargs)) is ANSWER


@given(NOT_OUTPUT, st.sampled_from(USABLE))
def test_content_is_an_answer_whatever_stands_beside_it(additional_kwargs, content):
    assert judge(AIMessage(content, additional_kwargs=additional_kwargs)) is ANSWER
    call = {"name": "f", "args": {}, "id": "1"}
    message = AIMessage("", tool_calls=[call], additional_kwargs=additional_kwargs)
    assert judge(message) is ANSWER
