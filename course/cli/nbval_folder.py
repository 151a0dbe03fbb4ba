"""A plugin of pytest for `sluice verify`: nbval starts the kernel of a copied notebook in the original's folder."""

from __future__ import annotations

import os
from typing import Any

from nbval import kernel, plugin  # type: ignore[import-untyped]  # nbval has no types

__all__: list[str] = []


class _KernelThere(kernel.RunningKernel):  # type: ignore[misc]  # as above
    def __init__(self, name: str, cwd: str | None = None, **more: Any) -> None:
        super().__init__(name, os.environ.get("SLUICE_NOTEBOOK_FOLDER", cwd), **more)


plugin.RunningKernel = _KernelThere
