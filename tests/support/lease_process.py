"""A process that wants to lead: python -m tests.support.lease_process FOLDER ADDRESS TIMEOUT_MS

It prints what the election says, and for each line that it reads whether it acts, and under which epoch.
"""

from __future__ import annotations

import select
import sys
import time

from refimpl.drivers.cluster.high_availability.election import Granted, LeaderElection
from refimpl.drivers.cluster.high_availability.leases import LeaseFolder
from refimpl.drivers.file_store import FileStore


def main(folder: str, address: str, timeout_ms: int) -> None:
    election = LeaderElection(LeaseFolder(FileStore(folder)), "rm", address, timeout_ms)
    epoch = 0
    while True:
        for event in election.step():
            if isinstance(event, Granted):
                epoch = event.token.epoch
            print(type(event).__name__, event.token.epoch, flush=True)
        wait_s = max(0.0, election.next_deadline - time.monotonic())
        if select.select([0], [], [], wait_s)[0]:
            if not sys.stdin.buffer.raw.readline():  # type: ignore[attr-defined]
                return
            print("acts" if election.leads else "does not act", epoch, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
