"""What tests ask of the source that a compiled engine cannot give, each with its reason; `make test-compiled` skips it.

Everything else that is tested of the engine must hold for both.
"""

from __future__ import annotations

import pytest

__all__ = ["NOT_COMPILED", "skip_on_compiled"]

TYPES = "a compiled function refuses an argument of another type itself, with a TypeError, before the engine can"
PATCHED = "nobody can replace a method of a compiled class"
SIGNATURE = "a compiled class has no signature that `inspect` could read"

NOT_COMPILED: dict[str, str] = {}
"""By the beginning of a test's id, a file or a test."""


def skip_on_compiled(items: list[pytest.Item]) -> None:
    """Skip what cannot hold, with its reason."""
    for item in items:
        for beginning, reason in NOT_COMPILED.items():
            if item.nodeid.startswith(beginning):
                item.add_marker(pytest.mark.skip(reason=reason))
