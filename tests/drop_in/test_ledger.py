"""Whatever a chat model of LangChain has was considered once, and is handled as said here.

A release of langchain-core that adds a name fails the test, so that somebody considers it before
its users meet it. Names that a release does not have, or not any more, are no matter.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import pydantic
import pytest
from langchain_core.language_models import BaseChatModel

from langchain_retrying import RetryingChatModel
from langchain_retrying.testing import ScriptedChatModel

CONSIDERED = {
    "overridden: calls the inner model's, judges what comes, and asks again": """
        _generate _agenerate _stream _astream
    """,
    "overridden: a cache stores and serves answers only": """
        _generate_with_cache _agenerate_with_cache
    """,
    "overridden: is the inner model's, where code of this class would tell of the wrapper": """
        _identifying_params _serialized
    """,
    "overridden: what it makes is wrapped again": """
        configurable_fields
    """,
    "a field: state shared with the inner model, read live and written through": """
        cache callbacks callback_manager custom_get_token_ids disable_streaming metadata name
        output_version profile rate_limiter tags verbose
    """,
    "inherited from the inner class: tells what the model is from the shared state": """
        _get_llm_string _llm_type
        InputType OutputType _convert_input _dict_for_compat
        _get_invocation_params _get_ls_params _get_ls_params_with_defaults
        asdict config_schema config_specs dict get_config_jsonschema get_graph
        get_input_jsonschema get_input_schema get_name get_output_jsonschema get_output_schema
        get_prompts input_schema output_schema
    """,
    "inherited: counts tokens as the inner class does": """
        get_num_tokens get_num_tokens_from_messages get_token_ids
    """,
    "inherited: decides how to stream by what the class has; `_derive` sees to that": """
        _should_stream _should_use_protocol_streaming _streaming_disabled
    """,
    "inherited: a way to call, that ends in the hooks, with this as the model": """
        __call__ _call_async _achat_model_stream_v3 _aiter_v2_events _chat_model_stream_v3
        _iter_v2_events abatch abatch_as_completed agenerate agenerate_prompt ainvoke apredict
        apredict_messages astream astream_events _astream_events_v1_v2
        _astream_events_v3_unsupported astream_log atransform batch batch_as_completed
        call_as_llm generate generate_prompt invoke predict predict_messages stream
        stream_events transform
    """,
    "inherited: puts together or replays what the hooks or a cache have returned": """
        _areplay_v2_events_for_cache_hit _combine_llm_outputs _convert_cached_generations
        _replay_v2_events_for_cache_hit
    """,
    "inherited: makes a runnable around this, so the retry stays underneath": """
        __or__ __ror__ as_tool assign bind bind_tools configurable_alternatives map pick pipe
        with_alisteners with_config with_fallbacks with_listeners with_retry
        with_structured_output with_types
    """,
    "inherited: runs for other kinds of runnables, never for chat models": """
        _abatch_with_config _acall_with_config _atransform_stream_with_config
        _batch_with_config _call_with_config _transform_stream_with_config
    """,
    "inherited: LangChain's serialized form, which is the inner model's": """
        get_lc_namespace is_lc_serializable lc_attributes lc_id lc_secrets to_json
        to_json_not_implemented
    """,
    "runs when a model is built, which a wrapper is not": """
        _add_version _all_required_field_names _check_profile_keys _resolve_model_profile
        _set_model_profile model_post_init raise_deprecation set_verbose
    """,
}
OVERRIDDEN = {
    name for how, names in CONSIDERED.items() if "overridden" in how for name in names.split()
}
NAMES = {name for names in CONSIDERED.values() for name in names.split()}


class Plain(pydantic.BaseModel, Generic[TypeVar("T")]):
    """Has what pydantic and Python give to any class."""

    name: str = ""

    _private: str = ""


def members(cls: type[Any]) -> set[str]:
    """Attributes, methods and fields of a class and its bases, but for pydantic's and Python's."""
    given = {*dir(Plain), *vars(Plain)} - {"dict", "model_post_init"}
    own = {*cls.model_fields}
    for base in cls.__mro__:
        own |= {name for name in vars(base) if name not in given and "pydantic" not in name}
    return own - {"__fields__", "__orig_bases__", "__slots__", "_abc_impl", "_is_protocol"}


def test_every_member_of_a_chat_model_was_considered():
    new = members(BaseChatModel) - NAMES
    assert not new, (
        f"langchain-core has added {', '.join(sorted(new))} to BaseChatModel. For each: does it "
        "work on a wrapper, whose state is the inner model's, or must RetryingChatModel override "
        "it, such as a new way to ask the provider that does not end in the hooks? Then put it "
        "where it belongs in CONSIDERED."
    )


def test_what_is_overridden_is_what_is_said_to_be():
    defined = {name for cls in RetryingChatModel.__mro__[:2] for name in vars(cls)}
    defined = defined & members(BaseChatModel)
    assert defined == OVERRIDDEN & members(BaseChatModel)


@pytest.mark.parametrize("name", sorted(BaseChatModel.model_fields))
def test_fields_are_the_inner_models(name):
    inner = ScriptedChatModel(["a"])
    model = RetryingChatModel(inner)
    assert getattr(model, name) is getattr(inner, name)
    value = object()
    vars(inner)[name] = value
    assert getattr(model, name) is value
