"""A run kept step by step, to be scrubbed: one snapshot per step, with the action that led to it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from widgets.base import json_text, path_of, text_of_file, whole_number
from widgets.snapshot_json import from_nodes, to_nodes
from widgets.view_models import Model, pipeline_model, topology

__all__ = ["MOST_FRAMES", "Moment", "Recording"]

MOST_FRAMES = 10**9

_FORMAT = "sluice-recording-2"

Moment = tuple[JobSnapshot, str]


class Recording:
    """The moments of one job, the newest `max_frames` of them; every view can show it.

    `num_dropped` counts older ones that had to go.

    Raises:
        LocalUsageError: there is no such moment, no job to record, no recording in a text, or `known` is no topology.
    """

    def __init__(self, known: Model, max_frames: int = 2_000) -> None:
        if not isinstance(known, Mapping):
            raise LocalUsageError(f"known={known!r} cannot work: what `topology(snapshot)` gives")
        whole_number("max_frames", max_frames, 1, MOST_FRAMES)
        self.topology = known
        self.max_frames = max_frames
        self.num_dropped = 0
        self._moments: deque[Moment] = deque(maxlen=max_frames)
        self._num_added = 0
        self._numbers: dict[int, int] = {}  # of the moments kept, by identity, counted from the first one ever

    @classmethod
    def of(cls, simulation: Simulation, max_steps: int | None = None, max_frames: int = 2_000) -> Recording:
        """Run `simulation` to its end, or for `max_steps` steps, and keep every moment, the first included."""
        if not all(callable(getattr(simulation, name, None)) for name in ("snapshot", "step")):
            raise LocalUsageError(f"a {type(simulation).__name__} takes no steps to record; give a Simulation")
        if max_steps is not None:
            whole_number("max_steps", max_steps, 0, MOST_FRAMES)
        start = simulation.snapshot()
        recording = cls(topology(start), max_frames)
        recording.add(start, "start")
        left = max_steps
        while left is None or left > 0:
            action = simulation.step()
            if action is None:
                break
            recording.add(simulation.snapshot(), str(action))
            left = None if left is None else left - 1
        return recording

    def __len__(self) -> int:
        return len(self._moments)

    def __repr__(self) -> str:
        tasks = len(self.topology.get("tasks", ()))
        return f"Recording({len(self)} frames of {tasks} tasks, {self.num_dropped} dropped)"

    def add(self, snapshot: JobSnapshot, action: str = "") -> None:
        """Keep one more moment of the same job.

        Raises:
            LocalUsageError: it is one of another job, or none at all.
        """
        self._refuse_foreign(snapshot)
        if not isinstance(action, str):
            raise LocalUsageError(f"action={action!r} cannot work: what led to the moment, in words")
        if len(self._moments) == self.max_frames:
            self.num_dropped += 1
            oldest = id(self._moments[0][0])
            if self._numbers.get(oldest) == self._num_added - self.max_frames:
                del self._numbers[oldest]
        if (place := self.place_of(snapshot)) is not None:  # nothing has changed since, and still it is another moment
            earlier = copy(snapshot)
            self._numbers[id(earlier)] = self._numbers[id(snapshot)]
            self._moments[place] = (earlier, self._moments[place][1])
        self._numbers[id(snapshot)] = self._num_added
        self._num_added += 1
        self._moments.append((snapshot, action))

    def _refuse_foreign(self, snapshot: JobSnapshot) -> None:
        if "tasks" not in self.topology:
            return  # moments of something that is no running job, for a view of its own
        if not isinstance(snapshot, JobSnapshot):
            raise LocalUsageError(f"a {type(snapshot).__name__} is no moment of a job; give a JobSnapshot")
        names, known = [task.name for task in snapshot.tasks], [task["name"] for task in self.topology["tasks"]]
        outputs = [(partition.name, len(partition.subpartitions)) for partition in snapshot.partitions]
        if names != known or outputs != [(output["name"], output["channels"]) for output in self.topology["outputs"]]:
            raise LocalUsageError(
                f"this moment is one of another job: of tasks {', '.join(names)}, and not {', '.join(known)}"
            )

    @property
    def moments(self) -> list[Moment]:
        """All moments kept, the oldest first: a snapshot and what led there."""
        return list(self._moments)

    def place_of(self, snapshot: JobSnapshot) -> int | None:
        """Which of `moments` this very snapshot is; several may have one time, so that does not tell."""
        number = self._numbers.get(id(snapshot))
        return None if number is None else number - self._num_added + len(self._moments)

    def model(self, index: int) -> Model:
        """The pipeline model of the moment at `index`; negative counts from the end.

        Raises:
            LocalUsageError: there is no such moment.
        """
        if isinstance(index, bool) or not isinstance(index, int) or not -len(self) <= index < len(self):
            known = f"from 0 to {len(self) - 1}" if len(self) else "as none has been added"
            raise LocalUsageError(f"index={index!r}: there are {len(self)} moments, {known}")
        snapshot, action = self._moments[index]
        return pipeline_model(snapshot, self.topology, action)

    # -- to and from a file ----------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything as one line of JSON, to attach to a question or to open elsewhere."""
        nodes, roots = to_nodes([snapshot for snapshot, _ in self._moments])
        return json_text(
            {
                "format": _FORMAT,
                "num_dropped": self.num_dropped,
                "max_frames": self.max_frames,
                "actions": [action for _, action in self._moments],
                "snapshots": roots,
                "nodes": nodes,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Recording:
        """The recording that `to_json` wrote."""
        try:
            data: dict[str, Any] = json.loads(text)
            if data["format"] != _FORMAT:
                raise LocalUsageError(f"this is {data['format']!r}, not {_FORMAT!r}")
            snapshots = from_nodes(data["nodes"], data["snapshots"])
            recording = cls(topology(snapshots[0]), data["max_frames"])
            for snapshot, action in zip(snapshots, data["actions"], strict=True):
                recording.add(snapshot, str(action))
            recording.num_dropped = whole_number("num_dropped", data["num_dropped"], 0, MOST_FRAMES)
            recording.model(-1)  # refuses here what would fail in a picture
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            raise LocalUsageError(f"this text is not a recording of Sluice: {error!r}") from error
        return recording

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        path_of(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read what `save` wrote."""
        return cls.from_json(text_of_file(path))
