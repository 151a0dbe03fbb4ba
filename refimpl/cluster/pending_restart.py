"""What of one job begins again, and when: a pause after its last failure, if all that had to stop has stopped by then.

Failures come one after the other: a second one, before the next attempts are made, begins the pause anew, and whatever
has to begin again because of it begins together with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from refimpl.cluster.executions import Execution
from refimpl.cluster.failover import to_restart
from refimpl.cluster.job_plan import JobPlan, Place
from refimpl.cluster.restart import GiveUp, RestartAt, Restarts, RestartStrategy

__all__ = ["PendingRestart"]


@dataclass(slots=True)
class _Pause:
    """The time between a failure and the next attempts of `places`."""

    until: RestartAt
    places: frozenset[Place]
    is_over: bool = False


class PendingRestart:
    """The next attempts of the job of `plan`, from a failure until they are made; most of the time there are none.

    Flink:   ExecutionFailureHandler (runtime.executiongraph.failover.flip1), DefaultScheduler.restartTasksWithDelay
             (runtime.scheduler), 1.11.4
    """

    def __init__(self, plan: JobPlan, strategy: RestartStrategy) -> None:
        self._plan = plan
        self._restarts = Restarts(strategy)
        self._pause: _Pause | None = None

    @property
    def places(self) -> frozenset[Place]:
        """The subtasks that are to begin again."""
        return frozenset() if self._pause is None else self._pause.places

    def failed(
        self,
        failed: Iterable[Place],
        waiting: frozenset[Place],
        is_available: Callable[[Place], bool],
        now_ms: float,
        is_recoverable: bool,
    ) -> frozenset[Place] | None:
        """These have failed; all that begin again now, and so have to stop, or `None` if the job has failed for ever.

        Those that are `waiting` to be sent out begin again with them.
        """
        decision = self._restarts.failed(now_ms, is_recoverable)
        if isinstance(decision, GiveUp):
            self._pause = None
            return None
        places = to_restart(failed, list(self._plan.slot_of), self._plan.exchanges, is_available)
        self._pause = _Pause(decision, places | waiting | self.places)
        return self.places

    def begin(self, executions: Mapping[Place, Execution]) -> frozenset[Place] | None:
        """The subtasks whose next attempts are to be made now: the pause is over, and the last ones have all ended."""
        pause = self._pause
        if pause is None or not pause.is_over or not all(executions[each].state.is_terminal for each in pause.places):
            return None
        self._pause = None
        return pause.places

    def give_up(self) -> None:
        """Nothing begins again."""
        self._restarts.disarm()
        self._pause = None

    @property
    def next_deadline(self) -> float | None:
        """When `on_timeout` wants to be called, in ms."""
        return None if self._pause is None or self._pause.is_over else self._pause.until.at_ms

    def on_timeout(self, now_ms: float) -> None:
        """The pause may be over."""
        pause = self._pause
        if pause is not None and not pause.is_over and now_ms >= pause.until.at_ms:
            pause.is_over = self._restarts.fires(pause.until.version)
