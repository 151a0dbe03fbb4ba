"""What a class costs a network and the instructor's machine: bytes and processor time of what its learners do.

    .venv/bin/python -m tests.bench.class_traffic --learners 40

Real requests of the learner's side go to a real server over loopback, through a relay that counts them. The bytes are
those of HTTP, without TCP and IP below it; over TLS there are some hundred more for each connection.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from course.learner.courier import ASK_S
from course.learner.outbox import Link
from tests.support.class_ends import checked, secret, served

__all__ = ["Cost", "main", "measured"]


@dataclass(frozen=True)
class Cost:
    """What one of these costs: bytes to the class and back, and ms of one core for server and client together."""

    what: str
    bytes_to: float
    bytes_back: float
    core_ms: float


class Relay:
    """Passes every connection on to a port of this machine, and counts what goes each way."""

    def __init__(self, port: int) -> None:
        self.counts = [0, 0]
        self._port = port
        self._is_closing = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            if self._is_closing:
                client.close()
                return
            with client, socket.create_connection(("127.0.0.1", self._port)) as server:
                back = threading.Thread(target=self._pump, args=(server, client, 1))
                back.start()
                self._pump(client, server, 0)
                back.join()

    def _pump(self, source: socket.socket, target: socket.socket, way: int) -> None:
        while piece := source.recv(65_536):
            self.counts[way] += len(piece)
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Take no more connections."""
        self._is_closing = True
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._accepting.join()
        self._listening.close()


@contextmanager
def _relay(port: int) -> Iterator[Relay]:
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()


def measured(num_learners: int) -> list[Cost]:
    """Let so many learners join, tell of a check, and ask for news; what each of these came to on average."""
    costs = []
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "class.sqlite") as room,
        _relay(room.port) as relay,
    ):
        link = Link("127.0.0.1", relay.port)

        def each(what: str, ask: Callable[[int], object]) -> None:
            before, started = list(relay.counts), time.process_time()
            for number in range(num_learners):
                ask(number)
            core_ms = (time.process_time() - started) * 1000 / num_learners
            to, back = ((now - was) / num_learners for now, was in zip(relay.counts, before, strict=True))
            costs.append(Cost(what, to, back, core_ms))

        def join(number: int) -> None:
            who = {"code": room.code, "handle": f"learner-{number}", "secret": secret(number)}
            link.ask("POST", "/api/join", who)

        def tell(number: int) -> None:
            body = {"now": room.clock(), "events": [checked(n=number)]}
            link.ask("POST", "/api/events", body, secret(number))

        each("joining", join)
        each("telling of a check", tell)
        each("asking for news", lambda number: link.ask("GET", "/api/orders", None, secret(number)))
    return costs


def main(words: list[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser("python -m tests.bench.class_traffic", description=__doc__)
    parser.add_argument("--learners", type=int, default=40, metavar="N", help="how many there are (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments = parser.parse_args(words)
    if arguments.learners < 1:
        parser.error("--learners must be at least 1")
    costs = measured(arguments.learners)
    asking = costs[-1]
    per_second = arguments.learners / ASK_S
    rate = per_second * (asking.bytes_to + asking.bytes_back) / 1000
    share = per_second * asking.core_ms / 1000
    if arguments.json:
        found = {"costs": [asdict(each) for each in costs], "kilobytes_per_second": rate, "core_share": share}
        print(json.dumps(found, indent=1))
        return 0
    print(f"{'':20}{'bytes to it':>12}{'back':>8}{'core ms':>10}")
    for each in costs:
        print(f"{each.what:20}{each.bytes_to:>12.0f}{each.bytes_back:>8.0f}{each.core_ms:>10.1f}")
    print(f"{arguments.learners} learners who ask every {ASK_S:.0f} s: {rate:.1f} kB/s, {share:.1%} of a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
