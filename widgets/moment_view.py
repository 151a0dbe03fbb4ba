"""What all views of a job share: where the moments come from, and what the browser may ask for.

Rules of this file:
- A handler prints nothing, and takes no lock but a `Stepper`'s: ipykernel may call it on one thread or another, also
  while a cell runs.
- A live job is looked at by the sampler's thread only, and only while somebody sees the view.
- A `Simulation` has one thread, so a click steps it on the one that runs cells; a `Stepper` locks itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, cast

from refimpl.consumer import ChannelSnapshot
from refimpl.drivers import AsyncRun, Command, Pause, Resume, RunControl, SetTimeout, Simulation, Slow, Swap
from refimpl.errors import USER_CODE_RAISES, LocalUsageError, described
from refimpl.job import JobSnapshot
from refimpl.producer import SubpartitionSnapshot
from widgets.base import View, chosen_options, whole_number
from widgets.main_thread import on_main_thread
from widgets.on_sight import OnSight, action_of
from widgets.recording import MOST_FRAMES, Recording
from widgets.sampler import (
    MAX_FRAMES_PER_SECOND,
    Observable,
    Sampler,
    check_frames_per_second,
    error_of,
    refusal_of,
)
from widgets.stepper import Stepper
from widgets.svg import sendable
from widgets.text import silence_of
from widgets.view_models import Model, topology

__all__ = ["MomentView", "Source"]

Source = Recording | JobSnapshot | Simulation | Stepper | Observable

_MAX_STEPS_PER_CLICK = 100
# What the browser calls the commands of a live job.
_COMMANDS: dict[str, type[Command]] = {
    "pause": Pause,
    "resume": Resume,
    "slow": Slow,
    "set_buffer_timeout": SetTimeout,
    "swap": Swap,
}


class MomentView(View):
    """A view of a job; `source` decides what it can do.

    - a `JobSnapshot`: stands still;
    - a `Recording`: scrubbed, played and stepped in the browser, no kernel needed;
    - a `Simulation`: each click takes a step, and what has been is kept to scrub;
    - a `Stepper`: also, you choose what goes next, and fork (F) from any moment with something changed;
    - a `ThreadedRun`, `ProcessRun`, or whatever has `snapshot()` and `is_done`: live, with the commands it
      `offers` if it is a `RunControl`. Nothing is sampled until a browser shows the view; an `OnSight` begins then.

    Options of every view: `title`; `frames_per_second`, at most 30; `at`, the frame of a recording to begin
    with (by default the first with the most buffers queued); `max_frames` kept of a simulation; `swaps`, by name the
    parts that can be put into a live job, as `run.swap` takes them: `{"mine": {"SpanningRecordSerializer": Mine}}`, or
    a function that is given the run and puts them in.

    Subclasses say what they show: `model_of`, `text_of`, `svg_of` and `frame_of`, which must take the
    same `known`, what never changes while the job runs.

    Raises:
        LocalUsageError: `source` is none of these, or there is no such option.
    """

    default_title = ""
    own_options: dict[str, Any] = {}  # noqa: RUF012 - read only; a subclass puts another in its place
    _sampler: Sampler | None = None  # on the class, these two: a view that was refused is closed, too
    _source: Source | None = None

    def __init__(self, source: Source, **given: Any) -> None:
        options = chosen_options(
            type(self).__name__,
            given,
            title=self.default_title,
            frames_per_second=MAX_FRAMES_PER_SECOND,
            at=None,
            max_frames=2_000,
            swaps=None,
            **self.own_options,
        )
        _check_options(options)
        self.options = options
        self._source = source
        self._viewers: set[str] = set()
        self._names: list[str] = []
        self._error = ""
        self._recording = self._record(source, options["max_frames"])
        self._known = self.known_of(self._recording.moments[0][0])
        mode, controls = self._abilities(source)
        at = self._first_frame(options["at"], mode)
        if mode == "live" and not isinstance(source, Recording | JobSnapshot | Simulation | Stepper):
            self._sampler = Sampler(source, self._pack, self.send, options["frames_per_second"])
        self._first = self.model_of(*self._recording.moments[at], self._known)
        self._first_silence = silence_of(self._recording.moments[at][0])
        if isinstance(source, Stepper):
            source.on_change.append(self._follow_stepper)
        self._num_sent = (0, 0)
        super().__init__(
            title=options["title"],
            _mode=mode,
            _controls=controls,
            _topology={**self._for_browser(self._first), "control": self._control(controls)},
            _frames=_json(self._pack_all()),
            _at=at,
            _picture=self.svg_of(self._first, options["title"], self._first_silence),
        )

    # -- what a subclass shows -------------------------------------------------------------------------

    def known_of(self, snapshot: JobSnapshot) -> Model:
        """What never changes while the job runs."""
        return topology(snapshot)

    def model_of(self, snapshot: JobSnapshot, action: str, known: Model) -> Model:
        """The moment as plain data."""
        raise NotImplementedError

    def text_of(self, model: Model, title: str, error: str) -> str:
        """The moment in words."""
        raise NotImplementedError

    def svg_of(self, model: Model, title: str, error: str) -> str:
        """The moment as a picture."""
        raise NotImplementedError

    def frame_of(self, model: Model) -> list[Any]:
        """What the browser needs of the moment: `[num_steps, time_ms, …]`."""
        raise NotImplementedError

    def _for_browser(self, _first: Model) -> Model:
        """What the browser needs once, besides the picture."""
        return self._known

    def _pack_all(self) -> Any:
        """The frames of all moments, as they go to the browser at first."""
        return self._all_frames()

    # -- the three faces -------------------------------------------------------------------------------

    def model(self) -> Model:
        """What the view shows now: of a recording the frame it began with, else the source as it is."""
        return self._now()[0]

    def _now(self) -> tuple[Model, str]:
        """What `model` gives, and who of the source does not answer."""
        if self._source is None or isinstance(self._source, Recording | JobSnapshot):
            return self._first, self._first_silence
        snapshot = self._source.snapshot()
        return self.model_of(snapshot, action_of(self._source), self._known), silence_of(snapshot)

    def text(self) -> str:
        model, silence = self._now()
        return str(sendable(self.text_of(model, self.title, self.error or silence)))

    def svg(self) -> str:
        model, silence = self._now()
        return self.svg_of(model, self.title, self.error or silence)

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
        if isinstance(self._source, Stepper) and self._follow_stepper in self._source.on_change:
            self._source.on_change.remove(self._follow_stepper)
        super().close()

    # -- the browser asks ------------------------------------------------------------------------------

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        kind = content.get("type")
        if isinstance(self._source, Stepper):
            self._do_with_stepper(self._source, str(kind), content)
        elif kind == "hello" and isinstance(self._source, Simulation):
            # The trait holds the first frame only: syncing all of them again with each step would be a flood.
            self._send_frames(self._source, "history", self._all_frames())
        elif kind in ("visible", "hidden"):
            self._set_watched(str(content.get("view", "")), kind == "visible")
        elif kind in ("slow", "set_buffer_timeout", "swap") and kind in self._controls:
            self._change_job(kind, content)
        elif kind in ("pause", "resume", "step") and kind in self._controls:
            if isinstance(self._source, Simulation):
                self._step_by_click(self._source, content)
            elif self._sampler is not None and isinstance(self._source, RunControl):
                self._sampler.submit(partial(self._source.do, Pause() if kind == "pause" else Resume()))

    def _change_job(self, kind: str, content: dict[str, Any]) -> None:
        """Have the pump change the running job; if that cannot be, the browser is told why."""
        run = self._source
        assert isinstance(run, RunControl), f"{run!r} offered {kind}"

        def change() -> None:
            parts = self._parts_called(content.get("name")) if kind == "swap" else None
            if callable(parts):
                parts(run.begun() if isinstance(run, OnSight) else run)
            else:
                run.do(Swap(dict(parts)) if parts is not None else self._command(kind, content))
            if parts is not None:
                self.on_swap(str(content.get("name")))
            self.send({"type": "refused", "words": ""})

        if self._sampler is not None:
            self._sampler.submit(change)

    def _command(self, kind: str, content: dict[str, Any]) -> Command:
        """What the browser asks for; the deployment refuses a number that is none."""
        if kind == "slow":
            return Slow(_meant(content.get("name"), self._names), cast("float", content.get("ms")))
        return SetTimeout(cast("int", content.get("ms")))

    def on_swap(self, name: str) -> None:
        """The part called so has just been put in."""

    def _parts_called(self, name: object) -> Any:
        swaps = self.options["swaps"] or {}
        if name not in swaps:
            raise LocalUsageError(f"there is nothing to swap in called {name!r}. There is: {', '.join(swaps)}")
        return swaps[name]

    def _control(self, controls: list[str]) -> Model:
        """What the browser offers to change of a live job."""
        if "slow" not in controls:
            return {}
        tasks = self._recording.moments[0][0].tasks
        operators = dict.fromkeys(name for task in tasks for name in task.operators)
        self._names = [*operators, *(task.name for task in tasks)]
        config = getattr(getattr(self._source, "deployment", self._source), "config", None)
        timeout = getattr(config, "buffer_timeout_ms", None)
        rests = getattr(self._source, "rests", {}) or {task.name: task.rest_ms for task in tasks if task.rest_ms}
        swaps = list(self.options["swaps"] or {})
        return {"names": self._names, "rests_ms": rests, "timeout_ms": timeout, "swaps": swaps}

    def _set_watched(self, view: str, is_watched: bool) -> None:
        """Count who looks: the same widget may be shown twice, or not at all."""
        (self._viewers.add if is_watched else self._viewers.discard)(view)
        if self._sampler is not None:
            if isinstance(self._source, OnSight):
                self._sampler.submit(self._source.begin)
            self._sampler.start()
            self._sampler.watch(bool(self._viewers))

    def _step_by_click(self, simulation: Simulation, content: dict[str, Any]) -> None:
        try:
            count = _num_steps(content)
        except LocalUsageError as error:
            self.send({"type": "refused", "words": refusal_of(error)})
            return
        on_main_thread(lambda: self._step(simulation, count))

    def _step(self, simulation: Simulation, count: int) -> None:
        """Take steps of a simulation, on the thread that runs cells."""
        frames: list[Any] = []
        try:
            while len(frames) < count and not self._error:
                action = simulation.step()
                if action is None:
                    break
                snapshot = simulation.snapshot()
                self._recording.add(snapshot, str(action))
                frames.append(self._pack(snapshot, str(action)))
        except USER_CODE_RAISES as error:  # nobody else could show what a click led to
            self._error = described(error)
        self._send_frames(simulation, "frames", frames)

    def _send_frames(self, simulation: Simulation, kind: str, frames: list[Any]) -> None:
        self.send({"type": kind, "frames": frames, "done": simulation.is_done, "error": self.error})

    def _do_with_stepper(self, stepper: Stepper, kind: str, content: dict[str, Any]) -> None:
        try:
            with stepper.lock:
                match kind:
                    case "hello":
                        self._send_steps(stepper, True)
                    case "step":
                        for _ in range(_num_steps(content)):
                            stepper.step()
                    case "choose":
                        stepper.step(_meant(content["action"], stepper.enabled()))
                    case "run":
                        stepper.run()
                    case "reset":
                        stepper.reset(content.get("seed"))
                    case "fork":
                        stepper.fork(content.get("at"), **dict(content.get("change", {})))
                    case "save":
                        name = f"sluice-run-{stepper.num_steps}-steps.json"
                        self.send({"type": "run", "name": name, "text": stepper.to_json()})
                    case "open":
                        self._open_run(stepper, content)
        except USER_CODE_RAISES as error:  # nobody else could show what a click led to
            if error is not stepper.error:  # that one has been told to every view
                self.send({"type": "refused", "words": refusal_of(error)})

    def _open_run(self, stepper: Stepper, content: dict[str, Any]) -> None:
        """Go to the run of a file; if it cannot be, say why and stay where we are."""
        try:
            stepper.restore(str(content.get("text")))
        except USER_CODE_RAISES as error:  # the job's own functions ran, and what failed is not our run
            self.send({"type": "refused", "words": f"{content.get('name')}: {refusal_of(error)}"})

    def _follow_stepper(self, is_anew: bool) -> None:
        """Called by the stepper when it has moved."""
        assert isinstance(self._source, Stepper), "nothing else calls this"
        self._send_steps(self._source, is_anew)

    def _send_steps(self, stepper: Stepper, is_anew: bool) -> None:
        """Send what the browser has not got of the stepper, or all."""
        main, other = stepper.recording, stepper.fork_recording
        sent = (0, 0) if is_anew else self._num_sent
        frames = [
            [self._pack(*moment) for moment in recording.moments[start:]] if recording is not None else []
            for recording, start in zip((main, other), sent, strict=True)
        ]
        self._recording = main
        self._num_sent = (len(main), len(other) if other is not None else 0)
        fork = {"step": stepper.fork_step, "words": str(stepper.change)} if other is not None else None
        self.send(
            {
                "type": "history" if is_anew else "frames",
                "frames": frames[0],
                "other": frames[1],
                "fork": fork,
                "done": stepper.is_done,
                "error": self.error,
                "enabled": stepper.enabled(),
                "seed": stepper.seed,
                "tasks": stepper.tasks,
            }
        )

    # -- what the source can do ------------------------------------------------------------------------

    def _pack(self, snapshot: JobSnapshot, action: str = "") -> list[Any]:
        return self.frame_of(self.model_of(snapshot, action, self._known))

    def _all_frames(self) -> list[Any]:
        return [self._pack(snapshot, action) for snapshot, action in self._recording.moments]

    def _first_frame(self, at: int | None, mode: str) -> int:
        """The frame to begin with, counted from the first one kept.

        Raises:
            LocalUsageError: there is no such frame.
        """
        num_frames = len(self._recording)
        if at is None:
            return _busiest(self._recording) if mode == "recorded" else num_frames - 1
        if isinstance(at, bool) or not isinstance(at, int) or not -num_frames <= at < num_frames:
            raise LocalUsageError(f"at={at!r}: there are {num_frames} frames, from 0 to {num_frames - 1}")
        return at % num_frames

    def _record(self, source: Source, max_frames: int) -> Recording:
        if isinstance(source, Recording):
            if len(source) == 0:
                raise LocalUsageError("the recording is empty; add a snapshot first")
            return source
        if isinstance(source, Stepper):
            return source.recording
        if isinstance(source, AsyncRun):  # it has no monitor: a look from another thread would find it in the middle
            raise LocalUsageError(
                "an AsyncRun moves on its event loop, and no other thread may look at it there; "
                "give a ThreadedRun, or one moment of it: run.snapshot()"
            )
        if not isinstance(source, JobSnapshot) and not (hasattr(source, "snapshot") and hasattr(source, "is_done")):
            raise LocalUsageError(
                f"a {type(source).__name__} cannot be shown; "
                "give a Simulation, a Stepper, a ThreadedRun, a ProcessRun, a Recording or a JobSnapshot"
            )
        snapshot = source if isinstance(source, JobSnapshot) else source.snapshot()
        recording = Recording(self.known_of(snapshot), max_frames)
        recording.add(snapshot, action_of(source))
        return recording

    @staticmethod
    def _abilities(source: Source) -> tuple[str, list[str]]:
        if isinstance(source, JobSnapshot) or (isinstance(source, OnSight) and not source.can_begin):
            return "still", []
        if isinstance(source, Recording):
            return "recorded", []
        if isinstance(source, Simulation):
            return "stepped", ["step"]
        if isinstance(source, Stepper):
            return "stepped", ["step", "choose", "run", "reset", "fork", "save", "open"]
        if not isinstance(source, RunControl):
            return "live", []
        return "live", [name for name, kind in _COMMANDS.items() if source.offers(kind)]


def _check_options(options: dict[str, Any]) -> None:
    """What every view is given besides its source.

    Raises:
        LocalUsageError: one of the options cannot work.
    """
    if not isinstance(options["title"], str):
        raise LocalUsageError(f"title={options['title']!r} cannot work: a string")
    check_frames_per_second(options["frames_per_second"])
    whole_number("max_frames", options["max_frames"], 1, MOST_FRAMES)
    swaps = options["swaps"]
    if swaps is not None and not (
        _has_names(swaps) and all(callable(parts) or _has_names(parts) for parts in swaps.values())
    ):
        raise LocalUsageError(
            f"swaps={swaps!r} cannot work: parts by the names of what they stand in for, and all that by a name of "
            'your own, such as {"mine": {"SpanningRecordSerializer": Mine}}'
        )


def _has_names(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _busiest(recording: Recording) -> int:
    """The first moment with the most buffers waiting: the end of a run, when all is empty, shows little."""
    waiting = [
        sum(_num_buffers(part.subpartitions) for part in snapshot.partitions)
        + sum(_num_buffers(gate.channels) for gate in snapshot.gates)
        for snapshot, _ in recording.moments
    ]
    return waiting.index(max(waiting))


def _num_buffers(queues: Iterable[SubpartitionSnapshot | ChannelSnapshot]) -> int:
    """How many buffers wait; a broadcast one stands in several queues and is still one, an event is none."""
    return len({entry.segment_id for each in queues for entry in each.queue if entry.data_type.is_buffer})


def _num_steps(content: Mapping[str, Any]) -> int:
    """How many steps a click asks for.

    Raises:
        LocalUsageError: it does not say.
    """
    return min(whole_number("n", content.get("n", 1), 0, MOST_FRAMES), _MAX_STEPS_PER_CLICK)


def _meant(words: object, names: Iterable[str]) -> str:
    """The one of `names` that the browser knows as `words`."""
    return next((name for name in names if sendable(name) == words), str(words))


def _json(frames: Any) -> str:
    return json.dumps(frames, separators=(",", ":"), ensure_ascii=False)
