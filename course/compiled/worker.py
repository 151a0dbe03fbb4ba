"""Runs mypyc in the current folder, in a process of its own: `python -m course.compiled.worker MODULE.py...`.

It prints the compiler's commands as they are run, one for each file, and before them how many there will be.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

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
    build_ext = import_module("setuptools.command.build_ext").build_ext

    class BuildAtOnce(build_ext):  # type: ignore[misc, valid-type]  # setuptools has no types
        def build_extensions(self) -> None:
            pool = ThreadPoolExecutor(_num_cores())
            _compile_in(pool, self.compiler)
            try:
                super().build_extensions()
            finally:
                pool.shutdown(cancel_futures=True)

    options = ["--config-file=", "--ignore-missing-imports", *(f"--disable-error-code={each}" for each in _LOOSENED)]
    extensions = mypycify(
        [*options, *files], opt_level="2", debug_level="0", multi_file=True, group_name="sluice_engine"
    )
    print(TOTAL, sum(len(each.sources) for each in extensions), flush=True)
    setup(
        name="sluice_engine",
        packages=[],
        ext_modules=extensions,
        script_args=["build_ext", "--inplace"],
        cmdclass={"build_ext": BuildAtOnce},
    )


def _compile_in(pool: Executor, compiler: Any) -> None:
    """Let setuptools' compiler work on several files of a library at once, and link when all are there."""
    compile_one, link = compiler._compile, compiler.link_shared_object
    begun: list[Future[None]] = []

    def begin(*words: Any) -> None:
        begun.append(pool.submit(compile_one, *words))

    def link_when_ready(*words: Any, **options: Any) -> None:
        for each in begun:
            each.result()
        begun.clear()
        link(*words, **options)

    compiler._compile, compiler.link_shared_object = begin, link_when_ready


def _num_cores() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


if __name__ == "__main__":
    main(sys.argv[1:])
