"""Liveness: if nothing can move, everything is done."""

from __future__ import annotations

from refimpl.job.deployment import Deployment

__all__ = ["check_liveness"]


def check_liveness(*deployments: Deployment) -> None:
    """Nothing can move, so everything must be done."""
    for deployment in deployments:
        for task in deployment.tasks:
            assert task.is_done, (
                f"nothing can move, but {task.name} is {task.progress.value}; "
                f"its outputs: {[writer.partition.pool for writer in task.writers]}"
            )
