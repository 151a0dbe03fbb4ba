"""A leader of the job on real processes, in a process of its own: it lets what its plan says strike at its own events.

    python -m tests.chaos.leader FOLDER

`plan` in the folder is what it is to suffer, `struck` has a line for each fault that has happened, by any leader. The
second half of the records is held until all that can be waited for has struck.

Exit status: 0 the job has ended, 3 it has lost its lead, 1 it has failed, and says why.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil

from refimpl.checkpoint import NotifyComplete, TriggerCheckpoint
from refimpl.cluster import FixedDelayRestart
from refimpl.config import CheckpointingMode, Config
from refimpl.drivers import ProcessRun
from refimpl.drivers.file_store import FileStore
from refimpl.drivers.file_transactions import FileSink
from refimpl.errors import LeadershipLostError
from refimpl.job import StreamEnvironment
from refimpl.task.checkpoint_reports import Snapshotted
from tests.chaos.job import results
from tests.chaos.plan import LAST_MARKS, FaultKind, Plan, PlannedFault
from tests.chaos.proxy import CuttingProxy

__all__ = ["LOST", "Faults", "WatchedStore", "main"]

LOST = 3
HEARTBEAT_TIMEOUT_S = 4.0


class WatchedStore(FileStore):
    """Files; where it was made, `on_event` hears of manifests before and behind their puts. Copies tell nobody."""

    on_event: Callable[[str], object] = staticmethod(lambda _mark: None)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileStore, (self.folder,)

    def put(self, key: str, parts: Iterable[bytes], *, replace: bool = False) -> None:
        if not key.endswith("/_metadata"):
            return super().put(key, parts, replace=replace)
        raw = b"".join(parts)
        final = "final " if b'"kind":"final"' in raw.lower().replace(b" ", b"") else ""
        self.on_event(f"{final}manifest")
        super().put(key, [raw], replace=replace)
        self.on_event(f"{final}complete")
        return None


class Faults:
    """What of a plan has not struck yet, and strikes `run` at the events that are told."""

    def __init__(self, plan: Plan, folder: Path, run: ProcessRun, proxies: list[CuttingProxy]) -> None:
        self._record, self._held = folder / "struck", folder / "held"
        before = Counter(self._record.read_text().splitlines() if self._record.exists() else ())
        self._left = [each for each in plan.faults if not _take(before, str(each))]
        self._run = run
        self._proxies = proxies
        self._num_events = Counter[str]()
        self._striking = threading.Lock()
        self._let_go()

    def event(self, mark: str) -> None:
        """Something happens; on any thread."""
        with self._striking:
            self._num_events[mark] += 1
            due = [each for each in self._left if each.mark == mark and self._num_events[mark] >= each.number]
            for fault in due:
                self._left.remove(fault)
                with self._record.open("a") as record:
                    record.write(f"{fault}\n")
                self._strike(fault)
            self._let_go()

    def _let_go(self) -> None:
        if all(each.mark in LAST_MARKS for each in self._left):
            self._held.touch()

    def _strike(self, fault: PlannedFault) -> None:
        pids = self._run.process_ids
        match fault.kind:
            case FaultKind.KILL_TASKMANAGER:
                _send(pids[fault.subject % len(pids)], signal.SIGKILL)
            case FaultKind.PAUSE_TASKMANAGER:
                _pause(pids[fault.subject % len(pids)], fault.amount / 1000)
            case FaultKind.KILL_LEADER:
                os.kill(os.getpid(), signal.SIGKILL)
            case FaultKind.PAUSE_LEADER:
                os.kill(os.getpid(), signal.SIGSTOP)
            case FaultKind.CUT:
                for proxy in self._proxies:
                    proxy.cut(fault.subject)
            case _:
                raise AssertionError(f"{fault} is none for processes")


def _take(counts: Counter[str], word: str) -> bool:
    """Whether the word is there, once less from now on."""
    counts[word] -= 1
    return counts[word] >= 0


def _send(pid: int, sent: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).send_signal(sent)


def _pause(pid: int, for_s: float) -> None:
    """Stop a process, and let it go on later if it is still the same one."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.send_signal(signal.SIGSTOP)

        def go_on() -> None:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)

        timer = threading.Timer(for_s, go_on)
        timer.daemon = True
        timer.start()


def environment(plan: Plan, folder: Path) -> StreamEnvironment:
    """The job of a plan, between the files of a folder."""
    config = Config(
        segment_size_bytes=96,
        num_buffers=120,
        source_batch=1,
        floating_buffers_per_gate=2,
        buffer_timeout_ms=1,
        checkpoint_interval_ms=10,
        checkpoint_timeout_ms=20_000,
        checkpoints_retained=2,
        max_concurrent_checkpoints=1 if plan.is_unaligned else 1 + plan.seed % 2,
        tolerable_failed_checkpoints=99,
        checkpointing_mode=CheckpointingMode.EXACTLY_ONCE if plan.is_exact else CheckpointingMode.AT_LEAST_ONCE,
        unaligned=plan.is_unaligned,
        seed=plan.seed,
    )
    job = StreamEnvironment(config, plan.num_task_managers)
    results(job, folder / "flights", plan.num_records, folder / "held").sink_to(FileSink(folder / "out"), name="files")
    return job


def watch(run: ProcessRun, store: WatchedStore, faults: Faults) -> None:
    """Let `faults` hear what the leader does and hears."""
    assert run.recovery is not None, "there is a store"
    checkpoints = run.recovery.checkpoints
    tell, task_says, start = checkpoints._tell, checkpoints.task_says, checkpoints.start

    def telling(attempt: Any, message: Any) -> None:
        if isinstance(message, TriggerCheckpoint | NotifyComplete):
            faults.event("trigger" if isinstance(message, TriggerCheckpoint) else "told")
        tell(attempt, message)

    def saying(attempt: Any, report: Any, now_ms: float) -> None:
        if isinstance(report, Snapshotted):
            faults.event("ack")
        task_says(attempt, report, now_ms)

    def starting(graph: Any, now_ms: float) -> None:
        start(graph, now_ms)
        if graph.generation:
            faults.event("start")

    vars(checkpoints).update(_tell=telling, task_says=saying, start=starting)
    store.on_event = faults.event


def lead(folder: Path) -> None:
    """Lead the job of a folder to its end.

    Raises:
        SluiceError: it has not come to its end.
    """
    plan: Plan = pickle.loads((folder / "plan").read_bytes())
    store = WatchedStore(folder / "store", fsync=False)
    with ExitStack() as stack:
        run = ProcessRun(
            environment(plan, folder),
            plan.num_task_managers,
            store=store,
            restart=FixedDelayRestart(99, 0.0),
            heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S,
        )
        stack.enter_context(run)
        proxies: list[CuttingProxy] = []
        if any(each.kind is FaultKind.CUT for each in plan.faults):
            proxies += [stack.enter_context(CuttingProxy()) for _ in range(plan.num_task_managers)]
            put_between(run, proxies)
        watch(run, store, Faults(plan, folder, run, proxies))
        run.start().join()


def put_between(run: ProcessRun, proxies: list[CuttingProxy]) -> None:
    """Let TaskManagers reach each other through `proxies` only."""
    start = run._cluster.start

    def starting(attempts: Any) -> None:
        for number, address in enumerate(attempts.addresses):
            if address is not None:
                proxies[number].target = address
                attempts.addresses[number] = proxies[number].address
        start(attempts)

    vars(run._cluster).update(start=starting)


def main(arguments: list[str]) -> int:
    """Lead the job of the folder that is named; the exit status."""
    try:
        lead(Path(arguments[0]))
    except LeadershipLostError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return LOST
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
