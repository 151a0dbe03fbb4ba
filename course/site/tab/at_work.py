"""What a worker runs as the child of a check: `child.py` as it is, with a fence, and rounds in place of a clock.

Handed to the worker as text. The worker's engine lacks the modules with reference parts, and there is no course in it;
what it must know comes with the job.
"""

from __future__ import annotations

import builtins
import json
import os
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["get_ready"]

_FOLDER = "/home/check"


def _module(name: str, source: str) -> types.ModuleType:
    module = types.ModuleType(name)
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102 - our own source
    return module


def get_ready(job_text: str, sources_text: str, say: Callable[[str], object]) -> Callable[[str], None]:
    """Load what the job takes; what is returned runs an order, once, and tells `say` each line of the transcript."""
    job: dict[str, Any] = json.loads(job_text)
    sources: dict[str, str] = json.loads(sources_text)
    root = Path(job["engine_root"])
    for name in job["modules"]:
        root.joinpath(*name.split(".")).with_suffix(".py").unlink(missing_ok=True)
    child, fence = _module("child", sources["child"]), _module("fence", job["fence"])
    rounds = _module("rounds", sources["rounds"])
    limit = rounds.limit_of_rounds(child.LEARNER_FILE, child.StepTimeoutError)
    one = child.Child(job, limit)

    def write(_descriptor: int, data: bytes) -> int:
        say(bytes(data).decode())
        return len(data)

    one._write = write
    one.load_driver()

    def run(order: str) -> None:
        job.update(json.loads(order))
        os.makedirs(_FOLDER, exist_ok=True)  # noqa: PTH103 - as in `child`
        os.chdir(_FOLDER)
        os.environ.update(HOME=_FOLDER, TMPDIR=_FOLDER)
        tempfile.tempdir = None  # it was asked for while the archive was unpacked; a part spills where TMPDIR says
        readable = ["/lib", job["engine"]]
        fence.raise_fence(_FOLDER, readable, [job["engine_root"]], job["denied"], [])
        builtins.input = lambda *_: (_ for _ in ()).throw(EOFError("a check has no keyboard"))
        one.run()

    return run
