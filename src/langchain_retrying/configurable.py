"""Configurable fields of a wrapped model: what is configured at run time is wrapped, too."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables.configurable import RunnableConfigurableFields


class ConfigurableFacade(RunnableConfigurableFields):  # type: ignore[type-arg]  # with arguments pydantic would build the default anew
    """Configurable fields of a wrapped model."""

    @classmethod
    def lc_id(cls) -> list[str]:
        """As without the wrapper."""
        return RunnableConfigurableFields.lc_id()

    def _prepare(self, config: Any = None) -> Any:
        facade: Any = self.default
        inner = RunnableConfigurableFields(default=facade.inner_model, fields=self.fields)
        prepared, config = inner._prepare(config)
        if prepared is facade.inner_model:
            return facade, config
        return facade._refacing(prepared), config
