"""Runs mypyc in the current folder, in a process of its own: `python -m course.compiled.worker MODULE.py...`.

It prints the compiler's commands as they are run, one for each file, and before them how many there will be.
"""

from __future__ import annotations

import signal
import sys
from importlib import import_module

__all__ = ["COMPILES", "TOTAL"]

TOTAL = "files to compile:"
COMPILES = " -c "
"""What stands in a line that says that a file is compiled now."""

# The source is checked by `make lint`. In the copy, attributes have the types of their base classes.
_LOOSENED = ("arg-type", "assignment", "attr-defined", "call-arg", "index", "misc", "override", "return-value",
             "union-attr")  # fmt: skip


def main(files: list[str]) -> None:
    """Compile these modules beside their sources."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whoever starts us lets signals wait meanwhile
    from mypyc.build import mypycify

    setup = import_module("setuptools").setup

    options = ["--config-file=", "--ignore-missing-imports", *(f"--disable-error-code={each}" for each in _LOOSENED)]
    extensions = mypycify(
        [*options, *files], opt_level="2", debug_level="0", multi_file=True, group_name="sluice_engine"
    )
    print(TOTAL, sum(len(each.sources) for each in extensions), flush=True)
    setup(name="sluice_engine", packages=[], ext_modules=extensions, script_args=["build_ext", "--inplace"])


if __name__ == "__main__":
    main(sys.argv[1:])
