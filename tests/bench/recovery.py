"""How long a job on processes stands still when some of them are killed: the others keep their slots, or none is left.

    python -m tests.bench.recovery             table, in a minute or two

Three TaskManagers, each a process of its own with a part of the job, and a checkpoint every 100 ms. In one way one of
them gets SIGKILL: the two others stay, with all that they have loaded, one process is started, and the tasks go on from
the newest checkpoint. In the other way all three get it, and a new run begins with the store of the old one. Time goes
from the kill to the first number that nobody had seen before it.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from refimpl.checkpoint import CheckpointCompleted
from refimpl.cluster import FixedDelayRestart
from refimpl.config import Config
from refimpl.drivers import ProcessRun
from refimpl.drivers.file_store import FileStore
from refimpl.errors import SluiceError
from refimpl.job import StreamEnvironment
from refimpl.records import LONG, StreamRecord, TupleType
from tests.bench.measure import Contender, Entry, Turn, timed
from tests.bench.program import run_program
from tests.support.polling import until

__all__ = ["RECOVERY", "recovery_s"]

NUM_TASK_MANAGERS = 3
INTERVAL_MS = 100
PACE_S = 0.001
MOST_S = 120.0
TICK = TupleType(LONG, LONG)


class Ticks:
    """A source of numbers, one every ms, until a file is there; each says whether it comes after a checkpoint."""

    def __init__(self, end: Path) -> None:
        self.position = 0
        self._is_restored = False
        self._end = end

    def seek(self, position: int) -> None:
        self.position, self._is_restored = position, True

    def read(self, _max_records: int) -> Sequence[StreamRecord] | None:
        if self._end.exists():
            return None
        time.sleep(PACE_S)
        self.position += 1
        return [StreamRecord((self.position - 1, int(self._is_restored)), None)]

    def close(self) -> None: ...


class Job:
    """A source, a map and a sink, each on a TaskManager, whose checkpoints are in `folder`; and what has arrived."""

    def __init__(self, folder: Path) -> None:
        self._numbers: list[int] = []
        self._restored = -1  # the highest number after a checkpoint; what was under way at the kill does not count
        self._store = FileStore(folder / "store")
        self._end = folder / "end"

    def run(self) -> ProcessRun:
        """Begin, or go on from the newest checkpoint."""
        end = self._end
        environment = StreamEnvironment(Config(buffer_timeout_ms=5, checkpoint_interval_ms=INTERVAL_MS))
        source = environment.source(lambda _subtask, _width: Ticks(end), "ticks", TICK).slot_sharing_group("one")
        mapped = source.rebalance().map(lambda tick: tick, "same", type=TICK).slot_sharing_group("two")
        mapped.rebalance().sink(self._arrived, "seen").slot_sharing_group("three")
        at_once = FixedDelayRestart(9, 0.0)
        return ProcessRun(environment, NUM_TASK_MANAGERS, store=self._store, restart=at_once).start()

    @property
    def highest(self) -> int:
        return max(self._numbers, default=-1)

    def has_gone_on(self, before: int) -> bool:
        """Whether a number above this one has come after a checkpoint."""
        return self._restored > before

    def finish(self, run: ProcessRun) -> None:
        """Let the source end, and see that nothing has got lost."""
        self._end.touch()
        run.join()
        assert set(self._numbers) == set(range(self.highest + 1)), "a number is lost"

    def _arrived(self, tick: tuple[int, int]) -> None:
        number, is_restored = tick
        self._numbers.append(number)
        if is_restored:
            self._restored = max(self._restored, number)


def recovery_s(*, is_one: bool) -> float:
    """Seconds from the SIGKILL, to one TaskManager or to all, until the job goes on."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        job = Job(Path(name))
        run = job.run()
        try:
            until(lambda: job.highest > 0 and has_checkpoint(run), MOST_S)
            began_s = time.monotonic()
            for each in run.process_ids[1:2] if is_one else run.process_ids:
                os.kill(each, signal.SIGKILL)
            if not is_one:
                with suppress(SluiceError):
                    run.cancel()
                run = job.run()
            before = job.highest
            until(lambda: job.has_gone_on(before), MOST_S)
            found_s = time.monotonic() - began_s
            job.finish(run)
        finally:
            run.cancel()
    return found_s


def has_checkpoint(run: ProcessRun) -> bool:
    assert run.recovery is not None
    return any(isinstance(each, CheckpointCompleted) for each in list(run.recovery.checkpoints.history))


def entry(key: str, meaning: str, *, is_one: bool) -> Entry:
    def run(num_records: int) -> Turn:
        found: list[float] = []
        spent = timed(lambda: found.append(recovery_s(is_one=is_one)))
        return Turn(num_records, *spent, num_records, {"recovery_s": found[0]})

    # What has arrived is looked at by `Job.finish`.
    return Entry(key, Contender(key, meaning, run, lambda n: (n, []), records_per_s=100), lambda _: [], int)


RECOVERY: dict[str, Entry] = {
    made.key: made
    for made in (
        entry("recovery/one", "one of three TaskManagers killed: the others keep their slots", is_one=True),
        entry("recovery/all", "all three killed: new processes and the whole job", is_one=False),
    )
}


def main(_arguments: Sequence[str] | None = None) -> int:
    """Kill one and all in turn; print the medians and the ratio within a round."""
    rounds = [(recovery_s(is_one=True), recovery_s(is_one=False)) for _ in range(5)]
    one, every = (statistics.median(each) for each in zip(*rounds, strict=True))
    ratio = statistics.median(one / every for one, every in rounds)
    print(f"from the kill to going on: {one:.2f} s of one TaskManager, {every:.2f} s of all; ratio {ratio:.2f}")
    return 0


if __name__ == "__main__":
    run_program(main)
