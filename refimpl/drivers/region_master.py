"""A thread that starts and ends the regions of a job, for drivers whose tasks run by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from refimpl.cluster.region_scheduling import RegionToStart
from refimpl.drivers.regions import JobRegions
from refimpl.errors import SluiceError
from refimpl.exchange.messages import ResultPartitionId
from refimpl.job.execution_graph import ExecutionVertex
from refimpl.laws.records import RecordCounts

__all__ = ["RegionAttempts", "RegionHost", "RegionMaster"]


class RegionAttempts(Protocol):
    """The present attempts of a region, wherever they run."""

    @property
    def error(self) -> BaseException | None:
        """Why they have failed, as soon as one has."""

    @property
    def is_over(self) -> bool:
        """Whether none of them runs any more."""


A = TypeVar("A", bound=RegionAttempts)


class RegionHost(Protocol[A]):
    """Where regions run. One thread calls; no call but `cancel` is made while another is."""

    def deploy(self, region: RegionToStart) -> A:
        """Make the attempts of a region, which do not run yet.

        Raises:
            SluiceError: one could not be made; nothing is left of the others.
        """

    def start(self, attempts: A) -> None:
        """Let them run.

        Raises:
            SluiceError: they have failed.
        """

    def end(self, attempts: A) -> list[RecordCounts]:
        """They have come to their end: give back what they hold, but for results; the counts of their records.

        Raises:
            AssertionError: a law is broken.
            SluiceError: what they have written is lost.
        """

    def stop(self, attempts: A, error: BaseException | None) -> None:
        """End them wherever they are; trouble is noted on `error`. Safe to repeat."""

    def cancel(self, attempts: A) -> None:
        """Let them come to an end after what they are doing now. Returns at once."""

    def is_available(self, producer: ExecutionVertex) -> bool:
        """Whether all that a finished attempt has written for who reads it later is there."""

    def drop(self, results: Collection[ResultPartitionId]) -> None:
        """Nobody needs these any more."""


class RegionMaster(Generic[A]):
    """Runs the regions of `job` on `host`; `on_over` is called, on its thread, when none runs any more, nor will.

    `error` is the one with which the job has failed for ever.

    Flink:   DefaultScheduler, PipelinedRegionSchedulingStrategy (runtime.scheduler), 1.12
    """

    def __init__(self, job: JobRegions, host: RegionHost[A], on_over: Callable[[], None]) -> None:
        self.job = job
        self.error: BaseException | None = None
        self.is_over = self.is_cancelled = False
        self.at_work: dict[int, A] = {}
        self._host = host
        self._on_over = on_over
        self._not_before_s = 0.0
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job master", daemon=True)

    @property
    def is_here(self) -> bool:
        """Whether its thread asks."""
        return threading.current_thread() is self._thread

    @property
    def is_wanted(self) -> bool:
        """Whether the job may go on."""
        return self.error is None and not self.is_cancelled

    def deploy_first(self) -> None:
        """Make the attempts of the first regions.

        Raises:
            SluiceError: they cannot be deployed.
        """
        for each in self.job.schedule.start_next():
            self.at_work[each.number] = self._host.deploy(each)

    def start(self) -> None:
        """Let them run, and see to all that follows; returns at once.

        Raises:
            SluiceError: they have failed.
        """
        for region in self._regions:
            self._host.start(region)
        self._thread.start()

    def note_news(self) -> None:
        """There may be something to see. Any thread; does not wait."""
        self._news.set()

    def cancel(self) -> None:
        """Start nothing more, and let what runs come to an end. Returns at once."""
        self.is_cancelled = True
        for region in self._regions:
            self._host.cancel(region)
        self._news.set()

    def close(self, within_s: float, error: BaseException | None = None) -> None:
        """Cancel, wait for the thread, and end what runs; trouble is noted on `error`. Safe to repeat."""
        self.cancel()
        if self._thread.ident is not None and not self.is_here:
            self._thread.join(within_s)
        for region in self._regions:
            self._host.stop(region, error)

    @property
    def _regions(self) -> list[A]:
        return list(self.at_work.values())

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not (self.is_cancelled or self.error is not None or self.job.schedule.is_done):
                self._look()
        except BaseException as error:  # noqa: BLE001 - handed to whoever joins
            self.error = self.error or error
        for region in self._regions:
            self._host.cancel(region)
        self.is_over = True
        self._on_over()

    def _look(self) -> None:
        """See what has become of the regions at work, and start those whose time has come; or wait for news."""
        self._news.clear()
        over = [number for number, region in self.at_work.items() if region.is_over]
        failed = {number: each.error for number, each in self.at_work.items() if each.error is not None}
        ended = [number for number in over if number not in failed]  # asked first: an error comes before an end
        failed |= self._end(ended)
        if failed:
            self._fail(failed)
        left_s = self._not_before_s - time.monotonic()
        if left_s <= 0 and self.error is None and (not_begun := self._start(self.job.schedule.start_next())):
            self._fail(not_begun)
        elif not (failed or ended):
            self._news.wait(left_s if left_s > 0 else None)

    def _start(self, due: Iterable[RegionToStart]) -> dict[int, BaseException]:
        """Deploy these and let them run; the errors of those that could not be."""
        errors: dict[int, BaseException] = {}
        for each in due:
            try:
                region = self.at_work[each.number] = self._host.deploy(each)
                self._host.start(region)
            except SluiceError as error:
                errors[each.number] = error
        return errors

    def _end(self, ended: Iterable[int]) -> dict[int, BaseException]:
        """Regions have come to their ends; the errors of those whose results are lost.

        Raises:
            AssertionError: a law is broken.
        """
        errors: dict[int, BaseException] = {}
        for number in ended:
            try:
                counts = self._host.end(self.at_work[number])
            except SluiceError as error:
                errors[number] = error
            else:
                del self.at_work[number]
                self._host.drop(self.job.ended(number, counts))
        return errors

    def _fail(self, failed: Mapping[int, BaseException | None]) -> None:
        error = next(each for each in failed.values() if each is not None)
        decided = self.job.failed(list(failed), error, time.monotonic() * 1000, self._host.is_available)
        if decided is None:
            self.error = error
            return
        restart, numbers, results = decided
        for number in numbers:
            if (region := self.at_work.pop(number, None)) is not None:
                with suppress(AssertionError):  # what it was in the middle of is of no interest
                    self._host.stop(region, error)
        self._host.drop(results)
        self._not_before_s = restart.at_ms / 1000
