"""The class as it stands in memory: what the file holds, brought up to date whenever somebody looks.

The file is the truth and may be written by others; a roll only reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from course.classroom.class_file import ClassError, ClassFile, EventRow, LearnerRow
from course.classroom.orders import ordered
from course.classroom.standing import Standing, standings

__all__ = ["Orders", "Pupil", "Roll"]


@dataclass(slots=True)
class Orders:
    """What the instructor decided, as it holds now. `version` grows with every decision."""

    version: int = 0
    checkpoint: str = ""
    checkpoint_at: float = 0.0
    hints: dict[str, int] = field(default_factory=dict)
    resets: dict[str, float] = field(default_factory=dict)
    num_resets: dict[str, int] = field(default_factory=dict)
    catchup: int = 0

    def for_learners(self) -> dict[str, object]:
        """What a learner's machine is told: no times, since its clock is another."""
        return {
            "version": self.version,
            "checkpoint": self.checkpoint,
            "hints": self.hints,
            "resets": self.num_resets,
            "catchup": self.catchup,
        }


@dataclass(slots=True)
class Pupil:
    """One learner with all events, and the standings that follow from them (made when they are asked for)."""

    row: LearnerRow
    events: list[EventRow] = field(default_factory=list)
    made: dict[str, Standing] | None = None


class Roll:
    """A class file, read. `refresh` brings it up to date and costs next to nothing if nothing changed.

    Ownership: `file` is a connection of the roll's own. SQLite tells it of what others commit, not of what it does.
    """

    def __init__(self, file: ClassFile) -> None:
        self._file = file
        self._seen_version = -1
        self.num_changes = 0
        self._seq = 0
        self.about: dict[str, str] = {}
        self.orders = Orders()
        self.pupils: dict[int, Pupil] = {}
        self.by_secret: dict[str, Pupil] = {}
        self.refresh()

    def refresh(self) -> bool:
        """Read what is new; whether there was anything."""
        version = self._file.data_version()
        if version == self._seen_version:
            return False
        about = self._file.about()
        if about.get("generation") != self.about.get("generation"):
            self.pupils, self._seq = {}, 0
        self._seen_version, self.about = version, about
        rows = {row.id: row for row in self._file.learners()}
        # A reset or a learner may have come between; each query sees a state at least as new as the one before it.
        for row in rows.values():
            self.pupils.setdefault(row.id, Pupil(row)).row = row
        self.by_secret = {each.row.secret: each for each in self.pupils.values() if each.row.secret is not None}
        for event in self._file.events_after(self._seq):
            if event.learner not in self.pupils:
                break  # of somebody who joined this instant: the next look finds both
            self._seq = event.seq
            pupil = self.pupils[event.learner]
            pupil.events.append(event)
            pupil.made = None
        self._obey()
        self.num_changes += 1
        return True

    def _obey(self) -> None:
        """Read the instructor's decisions; of each kind the last one holds."""
        actions = self._file.actions()
        if actions and actions[-1][0] == self.orders.version:
            return
        orders = Orders()
        for number, at, kept in actions:
            orders.version = number
            try:
                body = ordered(kept)
            except ClassError:
                continue  # damaged, or of another version
            exercise = body.get("exercise", "")
            match body["kind"]:
                case "checkpoint":
                    orders.checkpoint, orders.checkpoint_at = exercise, at
                case "unlock":
                    orders.hints[exercise] = int(body["rung"])
                case "reset":
                    orders.resets[exercise] = at
                    orders.num_resets[exercise] = orders.num_resets.get(exercise, 0) + 1
                case "catchup":
                    orders.catchup = int(body["lesson"])
        if orders.resets != self.orders.resets:
            for pupil in self.pupils.values():
                pupil.made = None
        self.orders = orders

    def standings(self, pupil: Pupil) -> dict[str, Standing]:
        """Where this learner stands, by exercise."""
        if pupil.made is None:
            pupil.made = standings(pupil.events, self.orders.resets)
        return pupil.made
