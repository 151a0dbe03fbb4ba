"""A run kept step by step, to be scrubbed: one snapshot per step, with the action that led to it."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from widgets.snapshot_json import from_nodes, to_nodes
from widgets.view_models import Model, pipeline_model, topology

__all__ = ["Moment", "Recording"]

_FORMAT = "sluice-recording-2"

Moment = tuple[JobSnapshot, str]


class Recording:
    """The moments of one job, the newest `max_frames` of them; every view can show it.

    `num_dropped` counts older ones that had to go.

    Raises (`from_json`):
        LocalUsageError: the text is not a recording.
    """

    def __init__(self, known: Model, max_frames: int = 2_000) -> None:
        if max_frames < 1:
            raise LocalUsageError(f"a recording keeps at least one frame, not {max_frames}")
        self.topology = known
        self.max_frames = max_frames
        self.num_dropped = 0
        self._moments: deque[Moment] = deque(maxlen=max_frames)

    @classmethod
    def of(cls, simulation: Simulation, max_steps: int | None = None, max_frames: int = 2_000) -> Recording:
        """Run `simulation` to its end, or for `max_steps` steps, and keep every moment, the first included."""
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
        tasks = len(self.topology["tasks"])
        return f"Recording({len(self)} frames of {tasks} tasks, {self.num_dropped} dropped)"

    def add(self, snapshot: JobSnapshot, action: str = "") -> None:
        """Keep one more moment of the same job."""
        self.num_dropped += len(self._moments) == self.max_frames
        self._moments.append((snapshot, action))

    @property
    def moments(self) -> list[Moment]:
        """All moments kept, the oldest first: a snapshot and what led there."""
        return list(self._moments)

    def model(self, index: int) -> Model:
        """The pipeline model of the moment at `index`; negative counts from the end.

        Raises:
            IndexError: there is no such moment.
        """
        snapshot, action = self._moments[index]
        return pipeline_model(snapshot, self.topology, action)

    # -- to and from a file ----------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything as one line of JSON, to attach to a question or to open elsewhere."""
        nodes, roots = to_nodes([snapshot for snapshot, _ in self._moments])
        return json.dumps(
            {
                "format": _FORMAT,
                "num_dropped": self.num_dropped,
                "max_frames": self.max_frames,
                "actions": [action for _, action in self._moments],
                "snapshots": roots,
                "nodes": nodes,
            },
            separators=(",", ":"),
            ensure_ascii=False,
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
            recording.num_dropped = int(data["num_dropped"])
            recording.model(-1)  # refuses here what would fail in a picture
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise LocalUsageError(f"this text is not a recording of Sluice: {error!r}") from error
        return recording

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read what `save` wrote."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))
