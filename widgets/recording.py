"""A run kept step by step, to be scrubbed: one frame per step, with the action that led to it."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from widgets.frames import Frame, pack, unpack
from widgets.view_models import Model, pipeline_model, topology

__all__ = ["Recording"]

_FORMAT = "sluice-recording-1"


class Recording:
    """The moments of one job, the newest `max_frames` of them.

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
        self._frames: deque[Frame] = deque(maxlen=max_frames)

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
        return len(self._frames)

    def __repr__(self) -> str:
        tasks = len(self.topology["tasks"])
        return f"Recording({len(self)} frames of {tasks} tasks, {self.num_dropped} dropped)"

    def add(self, snapshot: JobSnapshot, action: str = "") -> None:
        """Keep one more moment of the same job."""
        self.num_dropped += len(self._frames) == self.max_frames
        self._frames.append(pack(pipeline_model(snapshot, self.topology, action)))

    def model(self, index: int) -> Model:
        """The pipeline model of the frame at `index`; negative counts from the end.

        Raises:
            IndexError: there is no such frame.
        """
        return unpack(self.topology, self._frames[index])

    @property
    def frames(self) -> list[Frame]:
        """All frames kept, the oldest first, as `widgets.frames` packs them."""
        return list(self._frames)

    # -- to and from a file ----------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything as one line of JSON, to attach to a question or to open elsewhere."""
        return json.dumps(
            {
                "format": _FORMAT,
                "num_dropped": self.num_dropped,
                "max_frames": self.max_frames,
                "topology": self.topology,
                "frames": self.frames,
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
            recording = cls(data["topology"], data["max_frames"])
            recording.num_dropped = data["num_dropped"]
            for frame in data["frames"]:
                unpack(recording.topology, frame)  # refuses here what would fail in a picture
                recording._frames.append(frame)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise LocalUsageError(f"this text is not a recording of Sluice: {error!r}") from error
        return recording

    def save(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read what `save` wrote."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))
