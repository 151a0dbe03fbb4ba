"""Capture: what a task copies for a checkpoint is what was in flight, and is given away with it."""

from __future__ import annotations

from collections.abc import Iterable

from refimpl.consumer.network_input import NetworkInput
from refimpl.job.deployment import Deployment
from refimpl.task.task import Task

__all__ = ["CaptureLaw"]


class CaptureLaw:
    """The copies of all inputs of a job, looked at after each step; `begin` comes before each attempt.

    Behind the cut of a channel's producer no more comes, before the barrier, than the consumer had given credit for:
    the barrier has passed the rest. And nothing is kept once the checkpoint has its copies, or is given up.
    """

    def __init__(self) -> None:
        self._at_cut: dict[tuple[str, int, int], int] = {}  # task, channel, checkpoint: bytes when both had made theirs

    def begin(self) -> None:
        """Other tasks are there."""
        self._at_cut.clear()

    def look(self, deployments: Iterable[Deployment]) -> None:
        """Check what has happened since the last call.

        Raises:
            AssertionError: more was copied than may be.
        """
        all_of_them = list(deployments)
        cuts = {
            writer.partition.name: task.checkpoints.last_cut.checkpoint_id
            for deployment in all_of_them
            for task in deployment.tasks
            for writer in task.writers
            if task.checkpoints.last_cut is not None
        }
        for deployment in all_of_them:
            config = deployment.config
            most_buffers = config.buffers_per_channel + config.floating_buffers_per_gate + config.max_overdraft_buffers
            for task in deployment.tasks:
                self._look_at(task, cuts, (most_buffers + 1) * config.segment_size_bytes)

    def _look_at(self, task: Task, cuts: dict[str, int], most_bytes: int) -> None:
        if not isinstance(task.input, NetworkInput) or (capture := task.input.capture) is None:
            return
        if capture.begun_id < 0:
            held = [channel for channel in capture.channels if channel.copies or channel.is_copying]
            assert not held, f"{task.name} copies what is in flight for no checkpoint: {held}"
            return
        for index, name in enumerate(task.input.channel_names):
            if cuts.get(name.rpartition("[")[0], -1) < capture.begun_id:
                continue
            num_bytes, place = capture.channels[index].num_bytes, (task.name, index, capture.begun_id)
            num_more = num_bytes - self._at_cut.setdefault(place, num_bytes)
            assert num_more <= most_bytes, (
                f"{task.name} has copied {num_more} B of {name} that its producer had not sent when it made the cut "
                f"of checkpoint {capture.begun_id}; it has credit for {most_bytes} B"
            )
