"""The checkpoints of one try of the stage, as one TaskManager has a part in them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from refimpl.drivers.processes.attempt_checkpoints import AttemptCheckpoints
from refimpl.drivers.processes.messages import Ended, Saved, TaskSaid, TellTask
from refimpl.drivers.processing_clock import ProcessingClock
from refimpl.drivers.spark.completion import Coordinator, Participant
from refimpl.drivers.spark.job_master import SparkJobMaster, TryRecovery
from refimpl.drivers.spark.kept_results import KeptResults
from refimpl.drivers.spark.words import said_as_words, said_in, tell_as_words, tell_in
from refimpl.drivers.threads.task_manager import TaskManagerThreads

__all__ = ["TryCheckpoints", "TrySummary"]

_SECONDS_TO_PUT = 5.0
_READY = b'"ready"'


@dataclass(frozen=True, slots=True)
class TrySummary:
    """What came of the checkpoints of a try: complete ones, failed ones, the one it went on from; and which try it was,
    from 1."""

    completed: int
    failed: int
    restored: int | None
    number: int


class TryCheckpoints:
    """Those of the tasks of `threads`; with `recovery`, which number 0 has, also the coordinator of all.

    `voice` carries words to the others. No checkpoint is asked for before all are there to hear of it.
    """

    def __init__(
        self,
        threads: TaskManagerThreads,
        saved: Saved,
        results: KeptResults,
        voice: Coordinator | Participant,
        recovery: TryRecovery | None,
        clock: ProcessingClock,
    ) -> None:
        self.results = results
        self._saved = saved
        self._voice = voice
        self._recovery = recovery
        self._attempts = AttemptCheckpoints(threads, saved, 0, self._say)
        self._master: SparkJobMaster | None = None
        self._lock = threading.Lock()
        self._num_missing = threads.deployment.graph.placement.num_task_managers
        self._has_said_all = False
        self._then: Callable[[], None] = _nothing
        if recovery is not None:
            self._master = SparkJobMaster(recovery, clock, self._tell, threads.fail)

    def start(self) -> None:
        """The tasks here are about to run."""
        self.results.go_on()
        self._attempts.start()
        if isinstance(self._voice, Participant):
            self._voice.say(_READY)
        else:
            self._note_ready()

    def note_news(self) -> None:
        """A task has something to say. It does not wait."""
        self._attempts.note_news()

    def has_said_all(self, then: Callable[[], None]) -> bool:
        """Whether all tasks here have ended well, and all they had to say has been said; if not, `then` is called."""
        with self._lock:
            self._then = _nothing if self._has_said_all else then
            return self._has_said_all

    def hear_coordinator(self, words: bytes) -> None:
        """Pass a word to a task here."""
        self._attempts.tell(tell_in(words))

    def hear_participant(self, words: bytes) -> None:
        """Number 0 hears what a task elsewhere has to say."""
        if words == _READY:
            self._note_ready()
        elif self._master is not None:
            self._master.hear(said_in(words))

    def summary(self, first_epoch: int) -> TrySummary | None:
        """What came of the checkpoints, if this is where they are decided; tries claim epochs above `first_epoch`."""
        if self._recovery is None:
            return None
        counts, manifest = self._recovery.checkpoints.stats.snapshot().counts, self._recovery.manifest
        restored = None if manifest is None else manifest.checkpoint_id
        number = self._recovery.checkpoints.leader.epoch - first_epoch
        return TrySummary(counts.num_completed, counts.num_failed, restored, number)

    def close(self, has_ended_well: bool) -> None:
        """Take no more checkpoints; after the tasks."""
        if self._master is not None:
            if has_ended_well:
                self._master.all_ended()
            self._master.close()
        self._attempts.stop(_SECONDS_TO_PUT)

    def _note_ready(self) -> None:
        with self._lock:
            self._num_missing -= 1
            is_complete = self._num_missing == 0
        if is_complete and self._master is not None:
            self._master.begin()

    def _say(self, said: TaskSaid | Ended) -> None:
        if isinstance(said, Ended):
            with self._lock:
                self._has_said_all, then = True, self._then
            then()
        elif self._master is not None:
            self._master.hear(said)
        elif isinstance(self._voice, Participant):
            self._voice.say(said_as_words(said))

    def _tell(self, number: int, tell: TellTask) -> None:
        if number == 0:
            self._attempts.tell(tell)
        elif isinstance(self._voice, Coordinator):
            self._voice.tell(number, tell_as_words(tell))


def _nothing() -> None:
    """Nobody waits."""
