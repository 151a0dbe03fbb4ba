"""A job beside the monitor of back pressure: samples of all its tasks, one after the other, or none.

A question costs a hundred samples, and is answered for a minute. Here they do not stop while the job runs: the next ten
begin when ten are there.
"""

from __future__ import annotations

from functools import partial

from refimpl.cluster.back_pressure import DELAY_BETWEEN_SAMPLES_MS, SampleTasks
from refimpl.config import Config
from refimpl.drivers import ThreadedRun
from refimpl.drivers.pressure_sampling import SampleTimer
from refimpl.job import StreamEnvironment
from tests.bench.contenders import KIND, Adding, Reader, checksum
from tests.bench.measure import Contender, Entry, Turn, timed

__all__ = ["SAMPLING"]

NUM_SAMPLES = 10


class Sampled:
    """Samples of the tasks of one TaskManager, until nobody runs the job any more."""

    def __init__(self, samples: SampleTimer) -> None:
        self.num_taken = 0
        self._samples = samples
        self._tasks = tuple(samples.standing())
        self._num_answers = 0

    def begin(self) -> None:
        request = self.num_taken // NUM_SAMPLES
        order = SampleTasks(request, self._tasks, NUM_SAMPLES, DELAY_BETWEEN_SAMPLES_MS)
        self._num_answers = 0
        self._samples.sample(order, self._answered)

    def _answered(self, _request: int, _task: object, _ratio: float) -> None:
        self._num_answers += 1
        if self._num_answers == len(self._tasks):
            self.num_taken += NUM_SAMPLES
            self.begin()


def job(num_records: int, *, is_sampled: bool) -> Turn:
    """Two tasks, a record at a time, by ThreadedRun."""
    operator = Adding()
    environment = StreamEnvironment(Config(buffer_timeout_ms=-1, num_buffers=64, source_batch=64))
    source = environment.source(lambda _subtask, _parallelism: Reader(num_records), type=KIND)
    source.rebalance().sink(operator.value)
    run = ThreadedRun(environment)
    sampled = Sampled(run.task_managers[0].samples)

    def work() -> None:
        if is_sampled:
            sampled.begin()
        run.run()

    wall_s, cpu_s = timed(work)
    found = {"samples_per_s": sampled.num_taken / wall_s} if is_sampled else {}
    return Turn(num_records, wall_s, cpu_s, operator.total, found)


def entry(key: str, meaning: str, *, is_sampled: bool) -> Entry:
    run = partial(job, is_sampled=is_sampled)
    # The order of records is the affair of the row "job"; here their sum is looked at.
    made = Contender(key, meaning, run, lambda n: (run(n).num_records, []), least_records=LEAST_RECORDS)
    return Entry(key, made, lambda _: [], checksum)


LEAST_RECORDS = 200_000
"""Some hundred ms: samples are taken in tens, 50 ms apart."""

SAMPLING: dict[str, Entry] = {
    made.key: made
    for made in (
        entry("sampling/on", "a job of two tasks, samples of both every 50 ms", is_sampled=True),
        entry("sampling/off", "the same job, nobody asks", is_sampled=False),
    )
}
