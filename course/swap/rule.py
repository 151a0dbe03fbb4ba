"""A learner's rule at the gate of a running job: it looks at each part before the part goes in.

Three known-wrong parts and a right one come to the gate. What the rule turns down stays out; what it lets through goes
into the job halfway, and the records are counted.
"""

from __future__ import annotations

import io
import linecache
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from course.curriculum.seams import seam
from course.curriculum.specimens import Specimen, harness, right_answers, zoo
from refimpl.errors import USER_CODE_RAISES

__all__ = ["GateReport", "at_the_gate", "part_of"]

_NUM_WRONG = 3


@dataclass(frozen=True, slots=True)
class GateReport:
    """Who came to the gate, what the rule said, and what became of those it let in."""

    exercise: str
    rule_name: str
    is_learners: bool
    lines: tuple[str, ...]
    num_kept_out: int
    num_wrong: int

    def __repr__(self) -> str:
        whose = "your rule" if self.is_learners else "our rule (yours stands here when it passes its check)"
        head = f"{whose}: {self.rule_name}, at the gate of the job"
        return "\n".join([head, *self.lines, f"kept out: {self.num_kept_out} of {self.num_wrong} wrong parts"])


def at_the_gate(
    exercise: str, rule: Callable[[Any], Any], of: str, run: Callable[[Any], Any], *, is_learners: bool
) -> GateReport:
    """Ask `rule` about parts of the exercise `of`; `run` puts one into the job and reports."""
    names: dict[str, Any] = {"__name__": "harness"}
    exec(compile(harness(exercise), "<harness>", "exec"), names)  # noqa: S102 - our own source
    wrong = zoo(of)[:_NUM_WRONG]
    lines, num_kept_out = [], 0
    for specimen in (*wrong, right_answers(of)[0]):
        part = part_of(specimen, seam(of).member)
        is_let_in = _says(rule, names["under_test"](part))
        lines.append(f"  {specimen.name:<32} {'let in' if is_let_in else 'kept out'}")
        num_kept_out += not is_let_in and specimen in wrong
        if is_let_in:
            lines.append(f"    {_became(run(part))}")
    return GateReport(exercise, getattr(rule, "__name__", "rule"), is_learners, tuple(lines), num_kept_out, len(wrong))


def _says(rule: Callable[[Any], Any], given: Any) -> bool:
    try:
        return bool(rule(given))
    except USER_CODE_RAISES:  # a part that fails under a rule is turned down, whatever it raised
        return False


def part_of(specimen: Specimen, function: str = "") -> Any:
    """The part a specimen defines: the function of this name, else the last class."""
    file = f"<{specimen.name}>"
    linecache.cache[file] = (len(specimen.source), None, io.StringIO(specimen.source, newline=None).readlines(), file)
    module = types.ModuleType(f"specimen_{specimen.name}")
    sys.modules[module.__name__] = module  # dataclasses look there
    exec(compile(specimen.source, file, "exec"), module.__dict__)  # noqa: S102 - our own source
    if callable(named := vars(module).get(function)):
        return named
    own = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return own[-1]


def _became(report: Any) -> str:
    if report.error:
        return f"✗ the job stopped: {report.error}"[:92]
    if report.taken_out:
        return f"✗ taken out again: {report.taken_out[0]}"[:92]
    if report.num_lost:
        return f"✗ {report.num_lost} of {report.num_in} records lost, and no error"
    return "✓ in the job, none lost" if report.is_equal else "✗ none lost, and the answer is wrong"
