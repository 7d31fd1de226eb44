"""Imports point one way: a module uses only what stands in a line below its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import langchain_retrying

SOURCES = Path(langchain_retrying.__file__).parent
LAYERS = [
    "cli",
    "_demo",
    "_probe",
    "__init__",
    "init testing",
    "chat_model",
    "facade events",
    "configurable fallback cache",
    "calls",
    "opening",
    "attempts callbacks",
    "policy disguises refusals output_budget llm_output",
    "proper_end",
    "remedies bounds",
    "errors _checks wrapping",
    "reply tool_choice",
    "finish_reasons visible_text saved _compat equality waiting wrapping",
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}


def imported_by(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "langchain_retrying"
        ):
            _, _, module = node.module.partition(".")
            names |= {module.partition(".")[0]} if module else {a.name for a in node.names}
    # From the package itself come modules, or its public names.
    return {name if name in LEVEL else "__init__" for name in names}


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=str)
def test_a_module_imports_from_below(path):
    name = path.relative_to(SOURCES).parts[0].removesuffix(".py")
    others = imported_by(path) - {name}
    if name == "__init__":  # the public names of all
        others = set()
    assert not [other for other in others if LEVEL[other] <= LEVEL[name]]
