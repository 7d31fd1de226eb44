"""Imports point one way: a room uses only what stands in a line below its own, or is its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import langchain_retrying

SOURCES = Path(langchain_retrying.__file__).parent
LAYERS = [
    "_probe",
    "__init__ testing",
    "_chat_model",
    "_call _drop_in",
    "_policy",
    "_errors",
    "_judge",
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names.split()}


def rooms_imported_by(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "langchain_retrying"
        ):
            _, _, module = node.module.partition(".")
            rooms |= {module.partition(".")[0]} if module else {name.name for name in node.names}
    # From the package itself come rooms, or its public names.
    return {room if room in LEVEL else "__init__" for room in rooms}


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=str)
def test_a_room_imports_from_below(path):
    room = path.relative_to(SOURCES).parts[0].removesuffix(".py")
    others = rooms_imported_by(path) - {room}
    assert not [other for other in others if LEVEL[other] <= LEVEL[room]]
