"""Makes a failing input small: parts are left out and values made simpler for as long as the same rule still fails.

Inputs that were chosen by hand are small already; those made from a seed are not, and a learner who has
to redo forty operations on paper learns nothing from them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from course.grading.rules import Case, Check, Finding, Rule, Seen
from course.grading.transcripts import Transcript

__all__ = ["Failure", "shrunk", "smaller_lists"]

_ROUNDS = 10
_SECONDS = 5.0
_MOST_CASES = 400


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that failed: on which case, what was seen there, what was expected, and what it means."""

    case: Case
    seen: Seen
    expected: list[Any]
    finding: Finding


def smaller_lists(items: Sequence[Any], simpler: Callable[[Any], Iterable[Any]]) -> Iterator[list[Any]]:
    """Lists with something left out, from half of it to a single item; then with one item made simpler."""
    size = len(items) // 2
    while size:
        for start in range(0, len(items), size):
            yield [*items[:start], *items[start + size :]]
        size //= 2
    for index, item in enumerate(items):
        for other in simpler(item):
            yield [*items[:index], other, *items[index + 1 :]]


def shrunk(check: Check, rule: Rule, failure: Failure, run: Callable[[list[Case]], Transcript]) -> Failure:
    """The same failure on a smaller input, or `failure` itself; `run` takes cases to the learner's code.

    Takes a few rounds only, since somebody is waiting, and always as many, so that the same code gets the
    same message (the clock is for code that is slow itself). A smaller input that fails in another way
    under the same rule will do: it is easier to understand, and the next check shows the rest.
    """
    until = time.monotonic() + _SECONDS
    for _ in range(_ROUNDS):
        if time.monotonic() > until:
            break
        candidates = sorted(check.smaller(failure.case), key=_size)[:_MOST_CASES]
        candidates = [case for case in candidates if _size(case) < _size(failure.case)]
        if not candidates:
            return failure
        transcript = run(candidates)
        better = _first_failure(check, rule, candidates, transcript)
        if better is None:
            return failure
        failure = better
    return failure


def _size(case: Case) -> tuple[int, str]:
    text = json.dumps(case.ops)
    return len(text), text


def _first_failure(check: Check, rule: Rule, cases: Sequence[Case], transcript: Transcript) -> Failure | None:
    for index, (case, expected) in enumerate(zip(cases, check.expected(cases), strict=True)):
        seen = transcript.seen.get(index)
        finding = check.compare(rule, case, seen, expected) if seen is not None else None
        if seen is not None and finding is not None:
            return Failure(case, seen, expected, finding)
    return None
