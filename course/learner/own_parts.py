"""What a learner wrote in all lessons, as parts that can be put into a job: the newest source of each that passed."""

from __future__ import annotations

import contextlib
import io
import linecache
import sys
import types
from collections.abc import Mapping
from typing import Any

from course.curriculum.manifest import EXERCISES
from course.curriculum.seams import seam
from course.grading.child import find_part, time_limit
from course.grading.stand_ins import course_stand_in
from course.learner import progress
from course.learner.receipts import latest_passed
from refimpl.errors import described

__all__ = ["own_parts", "part_in"]

_FIND_SECONDS = 2.0


def own_parts(live: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The parts by exercise, and what else is to be said of whose a part is, such as ", as yours has not passed".

    `live` are those of the running kernel that passed; they come first.
    """
    parts, notes = dict(live), dict[str, str]()
    for exercise_id in EXERCISES:
        if exercise_id in parts:
            continue
        noted = progress.latest_check(exercise_id)
        was_tried = noted is not None and noted.get("status") != "not_started"
        if (kept := latest_passed(exercise_id)) is not None:
            try:
                parts[exercise_id] = part_in(exercise_id, kept[0])
                if noted is not None and noted.get("status") != "passed":
                    notes[exercise_id] = ", as it last passed"
            except Exception as error:  # noqa: BLE001 - it passed once, and need not run in this kernel
                notes[exercise_id] = f", as yours does not run here ({described(error)[:40]})"
        elif was_tried:
            notes[exercise_id] = ", as yours has not passed"
    return parts, notes


def part_in(exercise_id: str, source: str) -> Any:
    """The part in this source of an answer, found as a check finds it. What the source prints is not shown.

    Raises:
        LookupError: there is none in it.
    """
    wanted = seam(exercise_id)
    name, file = f"answer_{exercise_id.replace('.', '_')}", f"<your {exercise_id}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    registered: list[tuple[str, object]] = []
    stand_in, ours = course_stand_in(registered), sys.modules["course"]
    module = types.ModuleType(name)
    module.__dict__.update({key: value for key, value in vars(stand_in).items() if not key.startswith("__")})
    sys.modules[name] = module
    try:
        sys.modules["course"] = stand_in
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, file, "exec", dont_inherit=True), vars(module))  # noqa: S102 - the learner's own
    finally:
        sys.modules["course"] = ours
    job = {
        "exercise": exercise_id, "kind": wanted.kind, "member": wanted.member, "part": wanted.part,
        "methods": list(wanted.methods), "modules": {}, "limits": {"case_seconds": _FIND_SECONDS},
    }  # fmt: skip
    found = find_part(job, module, registered, time_limit)
    if "part" not in found:
        raise LookupError(f"there is no part of {exercise_id} in it")
    return found["part"]
