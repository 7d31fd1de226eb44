"""What differs between the supported releases of langchain-core and Python."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from langchain_core import exceptions

if TYPE_CHECKING:
    from langchain_core.exceptions import ModelError as ModelError  # noqa: PLC0414 -- exported
else:
    ModelError = getattr(exceptions, "ModelError", exceptions.LangChainException)
"""`langchain_core.exceptions.ModelError`; its base class where core has none yet (before 1.7)."""


def add_note(error: BaseException, note: str) -> None:
    """`error.add_note(note)`, which Python 3.10 has not; none, where an exception takes none."""
    with suppress(Exception):
        if sys.version_info >= (3, 11):
            error.add_note(note)
        else:
            # Where Python 3.11 has them.
            vars(error)["__notes__"] = [*getattr(error, "__notes__", ()), note]
