"""Liveness: if nothing can move, everything is done; and what is struck by no more faults comes to its end."""

from __future__ import annotations

from refimpl.job.deployment import Deployment

__all__ = ["LivenessLaw", "check_liveness"]


def check_liveness(*deployments: Deployment) -> None:
    """Nothing can move, so everything must be done."""
    for deployment in deployments:
        for task in deployment.tasks:
            assert task.is_done, (
                f"nothing can move, but {task.name} is {task.progress.value}; "
                f"its outputs: {[writer.partition.pool for writer in task.writers]}"
            )


class LivenessLaw:
    """The virtual time, in ms, that a job has been left alone: it ends, or fails for ever, `within_ms` of it.

    A job that does the same again and again moves all the time, and breaks no law but this one.
    """

    def __init__(self, within_ms: float) -> None:
        self._within_ms = within_ms
        self._quiet_since_ms = 0.0

    def struck(self, now_ms: float) -> None:
        """Something has happened to the job."""
        self._quiet_since_ms = now_ms

    def look(self, now_ms: float) -> None:
        """The job has not come to its end.

        Raises:
            AssertionError: it should have by now.
        """
        quiet_ms = now_ms - self._quiet_since_ms
        assert quiet_ms < self._within_ms, f"nothing has struck for {quiet_ms:g} ms, and the job has not ended"
