"""Configurable fields of a wrapped model: what is configured at run time is wrapped, too."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import configurable

from langchain_retrying._drop_in.facade import wrap_alike


class RunnableConfigurableFields(configurable.RunnableConfigurableFields):  # type: ignore[type-arg]  # with arguments pydantic would build the default anew
    """Configurable fields of a wrapped model; runs and traces have the name of the class."""

    def _prepare(self, config: Any = None) -> Any:
        prepared, config = super()._prepare(config)
        if prepared is self.default:
            return prepared, config
        return wrap_alike(self.default, prepared), config
