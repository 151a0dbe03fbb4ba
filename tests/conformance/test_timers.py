"""Timers fire once, in order, in their own kind of time, as Flink's `InternalTimerServiceImpl` has it.

A case is a list of steps. A step is one `op`, the timers that it `fired` in order, and afterwards the `deadline` of the
task, if the step names it: the only moment of processing time that is waited for. `when_fired` says what else is done
when a timer fires. Timers are [kind, time, key, namespace]; kinds are `event` and `processing`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

from refimpl.task import ProcessingTimers, ProcessingTimeService, TimerQueue

TOPIC = "timers"
BY_VERSION = False


class Script:
    """Both kinds of timers, and what a case wants done when one fires."""

    def __init__(self, when_fired: Sequence[dict[str, Any]]) -> None:
        self.time = ProcessingTimeService()
        self.event = TimerQueue()
        self.processing = ProcessingTimers(self.time, partial(self._on_timer, "processing"))
        self._when_fired = {tuple(each["timer"]): each["ops"] for each in when_fired}
        self._fired: list[list[Hashable]] = []

    def do(self, op: Sequence[Any]) -> list[list[Hashable]]:
        """What fires when `op` is done."""
        self._do(op)
        fired, self._fired = self._fired, []
        return fired

    def _do(self, op: Sequence[Any]) -> None:
        match op:
            case ["register" | "delete" as word, "event" | "processing" as kind, time, key, namespace]:
                getattr(getattr(self, kind), word)(time, key, namespace)
            case ["watermark", time]:
                for timer in self.event.advance(time):
                    self._on_timer("event", *timer)
            case ["processing_time", time]:
                self.time.advance(time)
                self.time.fire_due()
            case _:
                raise AssertionError(f"{op} is nothing to do with timers")

    def _on_timer(self, kind: str, time: int, key: Hashable, namespace: Hashable) -> None:
        self._fired.append([kind, time, key, namespace])
        for op in self._when_fired.get((kind, time, key, namespace), ()):
            self._do(op)


def test_timers_fire_as_flinks_do(case: dict) -> None:
    script = Script(case.get("when_fired", ()))
    for number, step in enumerate(case["steps"]):
        assert script.do(step["op"]) == step["fired"], f"step {number}: {step}"
        if "deadline" in step:
            assert script.time.next_deadline == step["deadline"], f"step {number}: {step}"
