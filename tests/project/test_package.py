"""What an installed package promises: types, a clean and small import, and its own metadata."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import typing
from importlib.resources import files

import langchain_retrying

PUBLIC = """
DEFAULT_NUDGE EmptyCompletionError FallbackModel Nudge RaiseOutputBudget RejectedAttempt Remedy
ReplyKind Request RetryBudget RetryPolicy RetryingChatModel WithParams init_retrying_chat_model
is_empty_ai_message judge repeat stop_after_rejected_tokens
"""


def run(code: str, *options: str) -> str:
    return subprocess.run(
        [sys.executable, *options, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_it_is_typed():
    assert files("langchain_retrying").joinpath("py.typed").is_file()
    classifiers = importlib.metadata.metadata("langchain-retrying").get_all("Classifier")
    assert "Typing :: Typed" in classifiers


def test_the_public_names():
    names = run("import langchain_retrying; print(*langchain_retrying.__all__)")
    assert sorted(names.split()) == sorted(PUBLIC.split())


def test_they_are_the_packages_own_and_their_types_can_be_told():
    for name in PUBLIC.split():
        public = getattr(langchain_retrying, name)
        if hasattr(public, "__qualname__") and name != "Remedy":  # which is a form of functions
            assert public.__module__ == "langchain_retrying"
            typing.get_type_hints(public)


def test_importing_it_warns_of_nothing():
    run("import langchain_retrying, langchain_retrying.testing", "-W", "error")


def test_importing_it_imports_no_provider_and_no_extra():
    code = """
import sys, langchain_core.language_models.chat_models, langchain_core.runnables.configurable
import langchain_core.utils.function_calling, tenacity
before = {name.partition(".")[0] for name in sys.modules}
import langchain_retrying
print(*{name.partition(".")[0] for name in sys.modules} - before)
"""
    own, *others = sorted(run(code).split(), key="langchain_retrying".__ne__)
    assert own == "langchain_retrying"
    assert not [name for name in others if name not in sys.stdlib_module_names]


def test_only_two_packages_are_needed():
    required = importlib.metadata.requires("langchain-retrying")
    needed = [requirement for requirement in required if "extra ==" not in requirement]
    names = [re.match("[a-z-]+", requirement).group() for requirement in needed]
    assert sorted(names) == ["langchain-core", "tenacity"]
