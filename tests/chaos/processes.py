"""One run of the job under a plan on real processes: leaders one after the other, each with TaskManagers of its own.

a leader that is killed is followed by another at once, its TaskManagers end by themselves
one that is stopped goes on later, beside the next, as one that does not know that it is no leader
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.chaos.job import write_flights
from tests.chaos.leader import LOST
from tests.chaos.plan import FaultKind, Plan, PlannedFault
from tests.chaos.world import Outcome, lines_in
from tests.support.polling import until

__all__ = ["ProcessWorld"]

MAX_LEADERS = 12
HANGS_AFTER_S = 300.0


@dataclass
class _Stopped:
    """A leader that stands still, and for how long behind the next claim; `at_s` is when that is over."""

    leader: subprocess.Popen[bytes]
    pause_ms: int
    num_claims: int
    at_s: float | None = None


class ProcessWorld:
    """A plan at work in `folder`."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._leaders: list[subprocess.Popen[bytes]] = []
        self._stopped: list[_Stopped] = []

    def run(self) -> Outcome:
        """Let it all happen.

        Raises:
            AssertionError: a leader has failed, or the job does not come to its end.
        """
        write_flights(self._folder / "flights", self._plan.num_records)
        (self._folder / "plan").write_bytes(pickle.dumps(self._plan))
        try:
            while not self._has_led_to_the_end(self._begin()):
                assert len(self._leaders) < MAX_LEADERS, f"{MAX_LEADERS} leaders were not enough: {self._said()}"
            self._let_all_go_on()
        finally:
            self._end_all()
        return Outcome(lines_in(self._folder / "out"), self._struck())

    def _begin(self) -> subprocess.Popen[bytes]:
        with (self._folder / f"leader {len(self._leaders)}").open("wb") as said:
            command = [sys.executable, "-m", "tests.chaos.leader", str(self._folder)]
            started = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
        self._leaders.append(started)
        return started

    def _has_led_to_the_end(self, leader: subprocess.Popen[bytes]) -> bool:
        """Wait until somebody else must lead, or nobody any more."""
        until(lambda: self._go_on_if_due() or leader.poll() is not None or _is_stopped(leader), HANGS_AFTER_S)
        if leader.returncode is None:
            pause_ms = next(each.amount for each in reversed(self._struck_faults()) if _pauses_leader(each))
            self._stopped.append(_Stopped(leader, pause_ms, self._num_claims()))
        assert leader.returncode in (None, 0, LOST, -signal.SIGKILL), f"a leader has failed: {self._said()}"
        return leader.returncode == 0

    def _go_on_if_due(self) -> bool:
        """Let those go on that were stopped for long enough; no end of anything.

        Before another one has claimed the lead none does: it would end the job, and the other would begin it anew.
        """
        for each in list(self._stopped):
            if each.at_s is None and self._num_claims() > each.num_claims:
                each.at_s = time.monotonic() + each.pause_ms / 1000
            if each.at_s is not None and each.at_s <= time.monotonic():
                self._stopped.remove(each)
                _go_on(each.leader)
        return False

    def _num_claims(self) -> int:
        return len(list(self._folder.glob("store/job/leader-*.claim")))

    def _let_all_go_on(self) -> None:
        """Whoever still believes to be a leader learns that it is none."""
        for leader in self._leaders:
            until(lambda leader=leader: leader.poll() is not None or _go_on(leader), HANGS_AFTER_S)
        said = self._said()
        assert "AssertionError" not in said, f"a leader that was paused has broken a law: {said}"

    def _end_all(self) -> None:
        for leader in self._leaders:
            with suppress(ProcessLookupError):
                os.killpg(leader.pid, signal.SIGKILL)
            leader.wait()

    # -- what is looked at -------------------------------------------------------------------------

    def _struck(self) -> list[str]:
        record = self._folder / "struck"
        return record.read_text().splitlines() if record.exists() else []

    def _struck_faults(self) -> list[PlannedFault]:
        return [PlannedFault.parse(each) for each in self._struck()]

    def _said(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in sorted(self._folder.glob("leader *")))


def _is_stopped(leader: subprocess.Popen[bytes]) -> bool:
    try:
        return psutil.Process(leader.pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def _go_on(leader: subprocess.Popen[bytes]) -> bool:
    """Let it go on if it is stopped; no end of it."""
    if _is_stopped(leader):
        leader.send_signal(signal.SIGCONT)
    return False


def _pauses_leader(fault: PlannedFault) -> bool:
    return fault.kind is FaultKind.PAUSE_LEADER
