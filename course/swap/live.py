"""The swap to look at: in a browser the job goes on in a live view, and a button puts the learner's part in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from course.curriculum.parts import to_departure
from course.data.flights_job import flights_job
from course.figures.live import endless_flights, shown_alone
from course.swap.guard import Guard
from refimpl.config import Config
from refimpl.job import WatermarkStrategy
from widgets import OnSight, ThroughputView

__all__ = ["end_last", "live_swap"]

_NAME = "swap"
_REST_MS = 20
_CUT_MS = 250  # of a job that only goes on to be looked at; one each ms would be most of its work
_guards: list[Guard] = []


def end_last() -> None:
    """End the job that was looked at last, and take the part out of it."""
    shown_alone(_NAME, None)
    while _guards:
        _guards.pop().__exit__()


def live_swap(
    exercise_id: str,
    part: Any,
    ours: Callable[[Any], None],
    theirs: Callable[[Any, Guard], None],
    config: Config,
    parallelism: int,
    num_task_managers: int,
    strategy: WatermarkStrategy | None = None,
) -> ThroughputView:
    """A job of flights that runs with our part; buttons put the learner's in, if there is one, and ours again."""
    if config.checkpoint_interval_ms:
        config = dataclasses.replace(config, checkpoint_interval_ms=_CUT_MS)
    job = OnSight(
        flights_job(endless_flights(), _ignore, config, parallelism, to_departure, strategy),
        num_task_managers=num_task_managers,
        rests={"flights": _REST_MS},
    )
    end_last()
    shown_alone(_NAME, job)

    def put_theirs(run: Any) -> None:
        guard = Guard(part)
        guard.__enter__()
        _guards.append(guard)
        theirs(run, guard)

    swaps = {"our part": ours} if part is None else {"your part": put_theirs, "our part": ours}
    return ThroughputView(job, title=f"{exercise_id} in a running job", swaps=swaps)


def _ignore(_result: object) -> None: ...
