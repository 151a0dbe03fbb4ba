"""A plugin of pytest for nbval: what reads notebooks starts without the grammars of internet addresses.

`nbformat` loads `jsonschema`, which builds 38 grammars of RFC 3987 where their package is installed: two seconds. They
are for schemas that check the format of a text, and nbformat checks none.
"""

from __future__ import annotations

import sys

__all__: list[str] = []

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # to import it is an ImportError, as without the package
