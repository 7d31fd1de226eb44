"""Configurable fields of a wrapped model: what is configured at run time is wrapped, too."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import configurable


class RunnableConfigurableFields(configurable.RunnableConfigurableFields):  # type: ignore[type-arg]  # with arguments pydantic would build the default anew
    """Configurable fields of a wrapped model; runs and traces have the name of the class."""

    def _prepare(self, config: Any = None) -> Any:
        facade: Any = self.default
        inner = configurable.RunnableConfigurableFields(
            default=facade.inner_model, fields=self.fields
        )
        prepared, config = inner._prepare(config)
        if prepared is facade.inner_model:
            return facade, config
        return facade._refacing(prepared), config
