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

__all__ = [
    "CONTROL",
    "LAST_MARKS",
    "MARKS",
    "MODES",
    "ON_PROCESSES",
    "PROCESS_MARKS",
    "SIMULATED",
    "FaultKind",
    "Plan",
    "PlannedFault",
    "drawn",
    "drawn_on_processes",
    "parsed",
]


class FaultKind(Enum):
    """What happens; behind it, what its amount is."""

    KILL_TASKMANAGER = "kill-taskmanager"  # ms until another takes its place
    PAUSE_TASKMANAGER = "pause-taskmanager"  # ms until it goes on, if nobody has ended it; on processes
    CRASH = "crash"
    KILL_LEADER = "kill-leader"
    PAUSE_LEADER = "pause-leader"  # how many steps the next one takes before the paused one goes on; on processes, ms
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

PROCESS_MARKS = ("trigger", "ack", "manifest", "complete", "told", "start")
"""On processes: what the leader is about to do or hears, and `complete` between a manifest and the news of it."""

LAST_MARKS = ("start", "final manifest", "final complete")
"""Those of them that nobody waits for: `start` is a restart, which may not come, the others are when all has ended."""

MODES = ("exact", "at-least-once", "unaligned")
"""How barriers are handled; exactly once, but for the second, and aligned, but for the third."""

SIMULATED = tuple(each for each in FaultKind if each is not FaultKind.PAUSE_TASKMANAGER)
ON_PROCESSES = (
    FaultKind.KILL_TASKMANAGER,
    FaultKind.KILL_TASKMANAGER,
    FaultKind.PAUSE_TASKMANAGER,
    FaultKind.KILL_LEADER,
    FaultKind.PAUSE_LEADER,
    FaultKind.CUT,
)

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
    is_on_processes: bool = False
    is_unaligned: bool = False
    sink_ms: float = 0.0
    """How long the sink takes for a record; above 0 work takes time, and the run is played aligned and unaligned."""

    @property
    def mode(self) -> str:
        """How barriers are handled, one of `MODES`."""
        return "unaligned" if self.is_unaligned else "exact" if self.is_exact else "at-least-once"

    def in_mode(self, mode: str) -> Plan:
        """The same with barriers handled so."""
        return replace(self, is_exact=mode != "at-least-once", is_unaligned=mode == "unaligned")

    def __str__(self) -> str:
        """The command line that repeats it."""
        drawn_here = drawn_on_processes(self.seed) if self.is_on_processes else drawn(self.seed)
        words = [f"--seed {self.seed}", *(["--on processes"] if self.is_on_processes else [])]
        if self.mode != drawn_here.mode:
            words.append(f"--mode {self.mode}")
        if self.sink_ms != drawn_here.sink_ms:
            words.append(f"--sink-ms {self.sink_ms:g}")
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
    """The run of a seed. Each fourth is at least once, each fourth unaligned; and each eighth has a slow sink."""
    random = Random(f"chaos {seed}")
    plan = Plan(
        seed,
        tuple(_fault(random) for _ in range(random.randint(1, 6))),
        random.choice((20, 40, 60)),
        seed % 4 != 3,
        random.randint(1, 3),
        random.choice((0.0, 0.3, 3.0)),
        random.choice((0.0, 0.3, 3.0)),
        is_unaligned=seed % 4 == 1,
    )
    return replace(plan, num_records=60, sink_ms=8.0) if seed % 8 == 6 else plan


def drawn_on_processes(seed: int) -> Plan:
    """The run of a seed with real processes. Each fifth is at least once, and each fifth unaligned."""
    random = Random(f"processes {seed}")
    faults = tuple(_process_fault(random) for _ in range(random.randint(1, 3)))
    num_records, num_task_managers = random.choice((40, 60, 80)), random.randint(2, 3)
    plan = Plan(seed, faults, num_records, seed % 5 != 4, num_task_managers, 0.0, 0.0, is_on_processes=True)
    return replace(plan, is_unaligned=seed % 5 == 3)


def _process_fault(random: Random) -> PlannedFault:
    kind = random.choice(ON_PROCESSES)
    amount = random.choice((0, 100, 1000, 60_000)) if "pause" in kind.value else 0
    mark = random.choice((*PROCESS_MARKS, *LAST_MARKS))
    most = {"ack": 30, "start": 2, "final manifest": 1, "final complete": 1}.get(mark, 6)
    return PlannedFault(kind, random.randrange(6), amount, mark=mark, number=random.randint(1, most))


def _fault(random: Random) -> PlannedFault:
    kind = random.choice(SIMULATED)
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
