"""Connections that die and stutter: no record that arrived is lost or doubled, nothing hangs, nothing leaks.

The first half moves the bytes of a small job by hand, so that a wire can be cut after every single byte. The second
half does it over real sockets. For peers that lie see `test_hostile.py`.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys

import pytest

from refimpl.config import Config, FlinkVersion
from refimpl.drivers.simulation import Way
from refimpl.drivers.transport import ConsumerEnd, ProducerEnd
from refimpl.errors import RemoteTransportError
from refimpl.invariants import check_all
from refimpl.job import ConnectionId, Deployment
from refimpl.records import BYTES
from tests.support.driver_rig import Meeting, Proxy, Side, Tally, apart, data, nothing_left, num_out

# -- by hand -----------------------------------------------------------------------------------------


class Conversation:
    """Two TaskManagers' parts of one job, and the bytes between them: `num_bytes` of one way arrive, then no more.

    One frame's bytes at a time go one way, `chunk` bytes at a time, then the other way, and after each piece every
    task does what it can. So two conversations are the same up to the cut.
    """

    def __init__(
        self,
        records: list[object],
        config: Config,
        cut: tuple[Way, int] | None = None,
        chunk: int = 1 << 20,
        width: int = 1,
    ) -> None:
        self.results: list[object] = []
        environment = apart(records, self.results.append, config, width, BYTES)
        self.sides = [Deployment(environment.execution_graph(2), number) for number in range(2)]
        there, here = self.sides
        self.producer = ProducerEnd(there.shuffle.accept("tm-0 to tm-1"), there.shuffle)
        self.connection = here.shuffle.connect(ConnectionId(0), "tm-1 reads tm-0 at 10.0.0.7:4711")
        self.consumer = ConsumerEnd(self.connection)
        self.error: Exception | None = None
        self.num_passed = dict.fromkeys(Way, 0)
        self.history: list[tuple[int, int]] = []  # after each piece of responses: bytes so far, results so far
        self._cut, self._chunk = cut, chunk
        self.is_cut = False

    def run(self) -> Conversation:
        """Go on until nothing moves any more."""
        self._work()
        while not self.is_cut and (self._pass(Way.REQUESTS) | self._pass(Way.RESPONSES)):
            pass
        return self

    def notice(self, first: str) -> None:
        """Both ends learn that the wire is cut, one after the other."""
        ends = [self.consumer, self.producer]
        for end in ends if first == "consumer" else reversed(ends):
            end.lose("cut by the test")
            self._work()
            check_all(*self.sides)

    def close(self) -> None:
        for side in self.sides:
            side.close()
        assert num_out(*self.sides) == 0

    def _pass(self, way: Way) -> bool:
        if way is Way.REQUESTS:
            said, take = b"".join(self.consumer.data_to_send()), self.producer.receive_data
        else:
            said, take = b"".join(self.producer._connection.data_to_send(1)), self.consumer.receive_data
            self.producer.data_sent()
        for start in range(0, len(said), self._chunk):
            piece = said[start : start + self._chunk]
            if self._cut is not None and self._cut[0] is way:
                room = self._cut[1] - self.num_passed[way]
                self.is_cut = len(piece) > room
                piece = piece[:room]
            take(piece)
            self.num_passed[way] += len(piece)
            self._work()
            if way is Way.RESPONSES:
                self.history.append((self.num_passed[way], len(self.results)))
            if self.is_cut:
                break
        return bool(said)

    def _work(self) -> None:
        """Let every task do what it can."""
        tasks = [task for side in self.sides for task in side.tasks]
        while runnable := [task for task in tasks if task.is_runnable and self.error is None]:
            for task in runnable:
                try:
                    task.step()
                except RemoteTransportError as error:
                    self.error = error


WORDS = [b"a", b"", b"spans several buffers", b"bc", b"the last"]


def small(version: FlinkVersion) -> Config:
    return Config(segment_size_bytes=12, num_buffers=40, buffer_timeout_ms=0, flink_version=version, source_batch=2)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["consumer", "producer"])
@pytest.mark.parametrize("way", list(Way))
@pytest.mark.parametrize("version", list(FlinkVersion))
def test_a_wire_cut_after_any_byte_loses_only_what_had_not_arrived(version: FlinkVersion, way: Way, first: str) -> None:
    config = small(version)
    whole = Conversation(WORDS, config).run()
    assert whole.results == WORDS
    assert whole.connection.is_closed
    whole.close()
    length = whole.num_passed[way]
    assert length > 100
    for offset in range(length):
        story = f"{way.value} cut after {offset} of {length} bytes, the {first} notices first"
        talk = Conversation(WORDS, config, (way, offset)).run()
        assert talk.is_cut, story
        if way is Way.RESPONSES:  # every record that was wholly there has been delivered
            arrived = max((count for at, count in whole.history if at <= offset), default=0)
            assert len(talk.results) == arrived, story
        talk.notice(first)
        assert talk.results == WORDS[: len(talk.results)], story
        if talk.results == WORDS and talk.connection.error is None:  # only the goodbye was lost
            assert talk.error is None, story
        else:
            said = str(talk.error)
            assert "tm-1 reads tm-0 at 10.0.0.7:4711" in said, story
            assert "cut by the test" in said, story
        talk.close()
    assert Conversation(WORDS, config, (way, length)).run().results == WORDS


@pytest.mark.parametrize("version", list(FlinkVersion))
@pytest.mark.parametrize("segment", [1, 12, 500])
@pytest.mark.parametrize("chunk", [1, 2, 3, 1_000])
def test_bytes_may_arrive_one_at_a_time(version: FlinkVersion, segment: int, chunk: int) -> None:
    random.seed(seed := 1_000 * segment + chunk)
    print(f"seed {seed}")
    words = [random.randbytes(random.choice((0, 1, 11, 40, 200))) for _ in range(12 if segment == 1 else 40)]
    config = Config(segment_size_bytes=segment, num_buffers=60, buffer_timeout_ms=0, flink_version=version)
    talk = Conversation(words, config, chunk=chunk, width=2).run()
    assert sorted(talk.results) == sorted(words)
    assert talk.connection.is_closed
    assert talk.producer.is_closed
    talk.close()


# -- over sockets: the connection dies ---------------------------------------------------------------

TINY = Config(segment_size_bytes=32, num_buffers=60, buffer_timeout_ms=1)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["there", "back"])
def test_a_socket_cut_after_some_bytes_loses_only_what_had_not_arrived(way: str) -> None:
    random.seed(seed := 31)
    print(f"seed {seed}")
    records = list(range(300))
    whole, results = through_a_proxy(records, way, None)
    assert results == records
    with nothing_left():
        for offset in sorted(random.sample(range(whole), 14)):
            _, results = through_a_proxy(records, way, offset)
            assert results == records[: len(results)], f"{way} cut after {offset} of {whole} bytes"


def through_a_proxy(records: list[int], way: str, offset: int | None, max_bytes: int = 1 << 16) -> tuple[int, list]:
    """How many bytes went that way, and what arrived."""
    tally = Tally()
    environment = apart(records, tally, TINY)
    with Side(environment, 0).start() as there, Side(environment, 1) as here:
        with Proxy(there.address, way, offset, max_bytes) as wire:
            error = here.start(wire.address).end()
            if error is None:
                assert tally == records
                here.threads.settle()
            else:
                assert isinstance(error, RemoteTransportError)
                assert f"at {wire.address[0]}:{wire.address[1]}" in str(error)
            here.threads.close()
            there.threads.close()
        return wire.num_passed[way], list(tally)


@pytest.mark.slow
def test_a_socket_may_give_one_byte_at_a_time() -> None:
    records = list(range(100))
    assert through_a_proxy(records, "back", None, max_bytes=1)[1] == records


def test_a_dead_connection_fails_its_channels_with_address_and_cause_and_no_others() -> None:
    config = Config(segment_size_bytes=32, num_buffers=60)
    environment = apart([], tally := Tally(), config, 2)
    environment.graph.nodes[1].parallelism = 1  # the one sink reads both sources, each on a TaskManager of its own
    with nothing_left(), Meeting() as first, Meeting() as second, Side(environment, 2, 3) as side:
        side.start(first.address, second.address)
        with first.accept() as dies, second.accept() as lives:
            (request,), (other,) = dies.hear_requests(1), lives.hear_requests(1)
            lives.send(data(other.receiver, 0, 5))
            tally.wait_for(1)
            dies.send(data(request.receiver, 0, 6)[:20])
            dies.socket.close()
            error = side.end()
            assert isinstance(error, RemoteTransportError)
            for said in (
                f"tm-2 reads tm-0 at 127.0.0.1:{first.address[1]}",
                "closed by remote task manager",
                "in the middle of a frame",
            ):
                assert said in str(error)
            errors = {
                read.channel.receiver: read.channel.error
                for reads in side.deployment.shuffle.remote_reads.values()
                for read in reads
            }
            assert errors == {request.receiver: error, other.receiver: None}
    assert tally == [5]


DYING_PEER = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as listening:
    print(listening.getsockname()[1], flush=True)
    connected = listening.accept()[0]
print(connected.recv(65536).hex(), flush=True)
connected.sendall(bytes.fromhex(sys.stdin.readline()))
print("sent", flush=True)
while connected.recv(65536): pass
"""


def test_a_producer_killed_in_the_middle_of_a_frame_fails_its_channel() -> None:
    environment = apart([], tally := Tally(), TINY)
    command = [sys.executable, "-c", DYING_PEER]
    with (
        nothing_left(),
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer,
        Side(environment, 1) as side,
    ):
        side.start(("127.0.0.1", int(peer.stdout.readline())))
        receiver = bytes.fromhex(peer.stdout.readline())[-20:-4]  # a PartitionRequest ends with it and the credit
        peer.stdin.write((data(receiver, 0, 1, 2) + data(receiver, 1, 3, 4)[:-3]).hex() + "\n")
        peer.stdin.flush()
        assert peer.stdout.readline() == "sent\n"
        tally.wait_for(2)
        peer.send_signal(signal.SIGKILL)
        error = side.end()
        assert isinstance(error, RemoteTransportError)
        assert "in the middle of a frame" in str(error)
    assert tally == [1, 2]
