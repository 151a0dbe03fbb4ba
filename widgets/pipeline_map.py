"""The pipeline map: a whole job at a glance, live, stepped, scrubbed or standing still."""

from __future__ import annotations

import json
from typing import Any

from refimpl.drivers import Simulation
from refimpl.errors import LocalUsageError
from refimpl.job import JobSnapshot
from widgets.base import View, chosen_options, front_end
from widgets.frames import Frame, pack
from widgets.pipeline_svg import pipeline_svg
from widgets.recording import Recording
from widgets.sampler import MAX_FRAMES_PER_SECOND, Observable, Sampler, error_of
from widgets.text import pipeline_text
from widgets.view_models import Model, pipeline_model, topology

__all__ = ["PipelineMap"]

Source = Recording | JobSnapshot | Simulation | Observable

_MAX_STEPS_PER_CLICK = 100


class PipelineMap(View):
    """A job as a metro map: tasks are stations, channels are lines, buffers wait on them.

    `source` decides what the view can do:

    - a `JobSnapshot`: stands still;
    - a `Recording`: scrubbed, played and stepped in the browser, no kernel needed;
    - a `Simulation`: each click takes a step, and what has been is kept to scrub;
    - a `ThreadedRun`, or whatever has `snapshot()` and `is_done`: live, with pause and resume if it
      has them. Nothing is sampled until a browser shows the view.

    Options: `title`; `frames_per_second`, at most 30; `at`, the frame of a recording to begin with
    (by default the first with the most buffers queued); `max_frames` kept of a simulation.

        PipelineMap(Recording.of(Simulation(environment, seed=7)), title="Two sources, two windows")
        PipelineMap(ThreadedRun(environment).start())

    Raises:
        LocalUsageError: `source` is none of these, or there is no such option.
    """

    _esm = front_end("pipeline_map")
    _sampler: Sampler | None = None  # on the class: a view that was refused is closed, too

    def __init__(self, source: Source, **given: Any) -> None:
        options = chosen_options(
            "PipelineMap", given,
            title="Pipeline map", frames_per_second=MAX_FRAMES_PER_SECOND, at=None, max_frames=2_000,
        )  # fmt: skip
        self._source = source
        self._viewers: set[str] = set()
        self._error = ""
        self._recording = self._record(source, options["max_frames"])
        mode, controls = self._abilities(source)
        at = options["at"]
        if at is None:
            at = _busiest(self._recording) if mode == "recorded" else len(self._recording) - 1
        if mode == "live":
            self._sampler = Sampler(source, self._pack, self.send, options["frames_per_second"])
        self._first = self._recording.model(at)
        super().__init__(
            title=options["title"],
            _mode=mode,
            _controls=controls,
            _topology=self._recording.topology,
            _frames=_json(self._recording.frames),
            _at=at % len(self._recording),
            _picture=pipeline_svg(self._first, options["title"]),
        )

    # -- the three faces -------------------------------------------------------------------------------

    def model(self) -> Model:
        """What the view shows now: of a recording the frame it began with, else the source as it is."""
        if isinstance(self._source, Recording | JobSnapshot):
            return self._first
        return pipeline_model(self._source.snapshot(), self._recording.topology)

    def text(self) -> str:
        return pipeline_text(self.model(), self.title, self.error)

    def svg(self) -> str:
        return pipeline_svg(self.model(), self.title, self.error)

    @property
    def error(self) -> str:
        """Why the job failed, as far as this view knows; "" if it did not."""
        return self._error or error_of(self._source)

    @property
    def recording(self) -> Recording:
        """The moments kept in the kernel: all of a recording, all stepped through of a simulation."""
        return self._recording

    @property
    def sampler(self) -> Sampler | None:
        """The pump of a live view."""
        return self._sampler

    def close(self) -> None:
        """End the view and its pump; the job goes on."""
        if self._sampler is not None:
            self._sampler.stop()
        super().close()

    # -- the browser asks ------------------------------------------------------------------------------

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        kind = content.get("type")
        if kind == "hello" and self._mode == "stepped":
            # The trait holds the first frame only: syncing all of them again with each step would be a flood.
            self._send_frames("history", self._recording.frames)
        elif kind in ("visible", "hidden"):
            self._set_watched(str(content.get("view", "")), kind == "visible")
        elif kind in ("pause", "resume", "step") and kind in self._controls:
            if isinstance(self._source, Simulation):
                self._step(int(content.get("n", 1)))
            elif self._sampler is not None:
                self._sampler.submit(getattr(self._source, kind))

    def _set_watched(self, view: str, is_watched: bool) -> None:
        """Count who looks: the same widget may be shown twice, or not at all."""
        (self._viewers.add if is_watched else self._viewers.discard)(view)
        if self._sampler is not None:
            self._sampler.start()
            self._sampler.watch(bool(self._viewers))

    def _step(self, count: int) -> None:
        """Take steps of a simulation. It has one thread, and ipykernel 7.4 brings clicks on that one."""
        frames: list[Frame] = []
        try:
            while len(frames) < min(count, _MAX_STEPS_PER_CLICK) and not self._error:
                action = self._source.step()
                if action is None:
                    break
                self._recording.add(self._source.snapshot(), str(action))
                frames.append(self._recording.frames[-1])
        except Exception as error:  # noqa: BLE001 - nobody else could show what a click led to
            self._error = f"{type(error).__name__}: {error}"
        self._send_frames("frames", frames)

    def _send_frames(self, kind: str, frames: list[Frame]) -> None:
        self.send({"type": kind, "frames": frames, "done": self._source.is_done, "error": self._error})

    # -- what the source can do ------------------------------------------------------------------------

    def _pack(self, snapshot: JobSnapshot) -> Frame:
        return pack(pipeline_model(snapshot, self._recording.topology))

    @staticmethod
    def _record(source: Source, max_frames: int) -> Recording:
        if isinstance(source, Recording):
            if len(source) == 0:
                raise LocalUsageError("the recording is empty; add a snapshot first")
            return source
        if not isinstance(source, JobSnapshot) and not (hasattr(source, "snapshot") and hasattr(source, "is_done")):
            raise LocalUsageError(
                f"a {type(source).__name__} cannot be shown; "
                "give a Simulation, a ThreadedRun, a Recording or a JobSnapshot"
            )
        snapshot = source if isinstance(source, JobSnapshot) else source.snapshot()
        recording = Recording(topology(snapshot), max_frames)
        recording.add(snapshot)
        return recording

    @staticmethod
    def _abilities(source: Source) -> tuple[str, list[str]]:
        if isinstance(source, JobSnapshot):
            return "still", []
        if isinstance(source, Recording):
            return "recorded", []
        if isinstance(source, Simulation):
            return "stepped", ["step"]
        return "live", [name for name in ("pause", "resume", "step") if callable(getattr(source, name, None))]


def _busiest(recording: Recording) -> int:
    """The first frame with the most buffers waiting: the end of a run, when all is empty, shows little."""
    queued = [sum(output[3] for output in frame[5]) for frame in recording.frames]
    return queued.index(max(queued))


def _json(frames: list[Frame]) -> str:
    return json.dumps(frames, separators=(",", ":"), ensure_ascii=False)
