"""Telling a model that is wrapped already from one that is not."""

from __future__ import annotations

from typing import Any

WRAPPER = "__langchain_retrying_base__"  # a name that pydantic leaves alone
"""An attribute of the classes that wrappers are of, and of no other: the class a user names."""


def is_wrapper(model: Any) -> bool:
    """Whether it is a model that is wrapped already."""
    return WRAPPER in vars(type(model))


def unwrapped(model: Any) -> Any:
    """The inner model of a wrapper; any other thing as it is."""
    return model.inner_model if is_wrapper(model) else model
