"""What one run is to suffer, as data: drawn from a seed, written on a command line, made smaller.

    kill-taskmanager/1/30@ms:12.5           at 12.5 ms of virtual time
    lose-message/0/0@3:Snapshotted          after the third action in whose words that stands

Between the slashes: which of those there are (more than there are begin anew), and by how much, as the fault has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

__all__ = ["CONTROL", "MARKS", "FaultKind", "Plan", "PlannedFault", "drawn", "parsed"]


class FaultKind(Enum):
    """What happens; behind it, what its amount is."""

    KILL_TASKMANAGER = "kill-taskmanager"  # ms until another takes its place
    CRASH = "crash"
    KILL_LEADER = "kill-leader"
    PAUSE_LEADER = "pause-leader"  # how many steps the next one takes before the paused one goes on
    CUT = "cut"
    DELAY_BARRIER = "delay-barrier"  # ms
    LOSE_MESSAGE = "lose-message"
    DELAY_MESSAGE = "delay-message"  # ms
    REPEAT_MESSAGE = "repeat-message"
    PUT_FAILS = "put-fails"
    PUT_FULL = "put-full"
    PUT_UNANSWERED = "put-unanswered"
    PUT_SLOW = "put-slow"  # ms
    GET_FAILS = "get-fails"
    LIST_FAILS = "list-fails"
    DELETE_FAILS = "delete-fails"
    CORRUPT = "corrupt"  # which byte of the newest checkpoint is written wrong


MARKS = (
    "Trigger",
    "Snapshotted",
    "NotifyComplete",
    "Finished",
    "_metadata",
    ".state",
    "store: delete",
    "restart",
    "step files",
    "deliver",
)
"""Words of actions: behind one of these a fault may come. Times alone never hit what is narrow."""

CONTROL = "control"
"""Instead of such words: any action that concerns the whole job."""

_MOST_AMOUNT = {
    FaultKind.KILL_TASKMANAGER: 20,
    FaultKind.PAUSE_LEADER: 300,
    FaultKind.DELAY_BARRIER: 30,
    FaultKind.DELAY_MESSAGE: 60,
    FaultKind.PUT_SLOW: 60,
    FaultKind.CORRUPT: 400,
}


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault, and when: behind the `number`th action that has `mark` in its words, or at `at_ms` if that is none."""

    kind: FaultKind
    subject: int = 0
    amount: int = 0
    at_ms: float = 0.0
    mark: str = ""
    number: int = 0

    def __str__(self) -> str:
        when = f"{self.number}:{self.mark}" if self.mark else f"ms:{self.at_ms:g}"
        return f"{self.kind.value}/{self.subject}/{self.amount}@{when}"

    @staticmethod
    def parse(text: str) -> PlannedFault:
        """The fault that is written so.

        Raises:
            ValueError: none is.
        """
        found = re.fullmatch(r"([a-z-]+)/(\d+)/(\d+)@(?:ms:([\d.]+)|(\d+):(.+))", text)
        if found is None:
            raise ValueError(f"{text!r} is no fault; one is written {PlannedFault(FaultKind.CUT, 0, 0, 12.5)}")
        kind, subject, amount, at_ms, number, mark = found.groups()
        return PlannedFault(FaultKind(kind), int(subject), int(amount), float(at_ms or 0), mark or "", int(number or 0))


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: what the seed has drawn is in it, and can be taken from it."""

    seed: int
    faults: tuple[PlannedFault, ...]
    num_records: int
    is_exact: bool
    num_task_managers: int
    delay_ms: float
    control_delay_ms: float

    def __str__(self) -> str:
        """The command line that repeats it."""
        drawn_here = drawn(self.seed)
        words = [f"--seed {self.seed}"]
        if self.is_exact != drawn_here.is_exact:
            words.append(f"--mode {'exact' if self.is_exact else 'at-least-once'}")
        if self.faults != drawn_here.faults:
            words.append(f"--faults '{','.join(map(str, self.faults))}'")
        if self.num_records != drawn_here.num_records:
            words.append(f"--records {self.num_records}")
        if self.num_task_managers != drawn_here.num_task_managers:
            words.append(f"--task-managers {self.num_task_managers}")
        if (self.delay_ms, self.control_delay_ms) != (drawn_here.delay_ms, drawn_here.control_delay_ms):
            words.append(f"--delays {self.delay_ms:g},{self.control_delay_ms:g}")
        return f"python -m tests.chaos {' '.join(words)}"


def drawn(seed: int) -> Plan:
    """The run of a seed. Each fourth is at least once, with aligned barriers all others."""
    random = Random(f"chaos {seed}")
    return Plan(
        seed,
        tuple(_fault(random) for _ in range(random.randint(1, 6))),
        random.choice((20, 40, 60)),
        seed % 4 != 3,
        random.randint(1, 3),
        random.choice((0.0, 0.3, 3.0)),
        random.choice((0.0, 0.3, 3.0)),
    )


def _fault(random: Random) -> PlannedFault:
    kind = random.choice(list(FaultKind))
    amount = random.randint(0, _MOST_AMOUNT.get(kind, 0))
    fault = PlannedFault(kind, random.randrange(8), amount)
    if random.random() < 0.4:
        return replace(fault, at_ms=round(random.uniform(0, 30), 2))
    mark = random.choice(MARKS)
    return replace(fault, mark=mark, number=random.randint(1, 60 if mark in ("step files", "deliver") else 12))


def parsed(text: str) -> tuple[PlannedFault, ...]:
    """The faults that are written with commas between.

    Raises:
        ValueError: one is none.
    """
    return tuple(PlannedFault.parse(each) for each in text.split(",") if each)
