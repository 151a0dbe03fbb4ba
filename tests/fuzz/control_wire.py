"""Hostile bytes for who listens to the processes of its cluster: strangers, damaged connections, members gone mad.

An input is its seed and number. Whatever comes, nothing but a RemoteProtocolError or an OSError goes out; a stranger
is not answered; what is taken in is a beginning of what a member has sent; and memory stays within the bytes that came.
"""

from __future__ import annotations

import json
import random
import traceback
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refimpl.cluster.executions import ExecutionId
from refimpl.cluster.fencing import Envelope, FencingToken
from refimpl.cluster.messages import OfferedSlots, RegisterTaskManager, TaskReport, TaskState
from refimpl.cluster.slots import AllocationId, SlotId, SlotStatus
from refimpl.drivers.cluster.rpc.codec import Codec
from refimpl.drivers.cluster.rpc.sealed_stream import FrameReader, FrameWriter, Hello, accept_seal, request_seal
from refimpl.drivers.cluster.rpc.secret import ClusterSecret
from refimpl.errors import RemoteProtocolError
from tests.fuzz.harness import Fault

__all__ = ["KINDS", "control_fault", "play_control"]

MAX_BYTES = 4_096
HERE, THERE = "127.0.0.1:1", "127.0.0.1:2"
_SECRET, _OTHER = ClusterSecret(bytes(range(32))), ClusterSecret(bytes(32))
_CODEC = Codec(max_bytes=MAX_BYTES)
_BYTES_OF_A_WORLD = 200_000
_PYTHON_FACTOR = 120  # a byte of JSON may become a list, or an object, of its own while it is read

End = tuple[int, str]
"""How many bytes have come, and what came of them."""


class Said:
    """The stream of a client that has said all it will ever say. As `ByteStream`."""

    def __init__(self, said: bytes, rng: random.Random) -> None:
        self.peer = "fuzz"
        self.answered = b""
        self._said = said
        self._rng = rng

    def read(self, max_bytes: int) -> bytes:
        length = self._rng.randint(1, max_bytes)
        data, self._said = self._said[:length], self._said[length:]
        return data

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        self.answered += b"".join(pieces)

    def limit(self, timeout_s: float | None) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...


def hello_of(secret: ClusterSecret, hello: Hello) -> bytes:
    """What who knows `secret` says first."""
    client: Any = Said(b"", random.Random(0))
    try:
        request_seal(client, secret, hello, MAX_BYTES, 60)
    except OSError:  # nobody answers
        return bytes(client.answered)
    raise AssertionError("nobody has answered, and it was content")


def harmed(data: bytes, rng: random.Random) -> bytes:
    """`data` with something else in it."""
    at = rng.randrange(len(data) + 1)
    match rng.randrange(5):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + rng.randbytes(rng.randint(1, 40)) + data[at:]
        case 2:
            return data[:at] + data[rng.randint(at, len(data)) :]
        case 3:
            return rng.randbytes(rng.randint(0, 2_000))
        case _:
            at = min(at, max(0, len(data) - 1))
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if data else b"\xff"


# -- the inputs ------------------------------------------------------------------------------------------


def stranger(rng: random.Random) -> End:
    """A client that does not know the secret, or means another place."""
    good = hello_of(_SECRET, Hello("envelopes", THERE, HERE))
    said = rng.choice(
        [
            lambda: harmed(good, rng),
            lambda: hello_of(_OTHER, Hello("envelopes", THERE, HERE)),
            lambda: hello_of(_SECRET, Hello("envelopes", THERE, "127.0.0.1:3")),
            lambda: good[:8] + rng.randbytes(2) + good[10:] + rng.randbytes(rng.randint(0, 2_000)),
            lambda: rng.choice([b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"", bytes(2_000)]),
        ]
    )()
    client: Any = Said(said, rng)
    try:
        accept_seal(client, _SECRET, HERE, MAX_BYTES, 60)
    except (RemoteProtocolError, OSError) as error:
        assert client.answered == b"", f"a stranger was answered {client.answered!r}"
        return len(said), str(error)
    assert said[: len(good)] == good, f"{said!r} was let in"
    return len(said), "let in"


def cut_connection(rng: random.Random) -> End:
    """A member whose frames are lost, repeated, moved or changed on their way."""
    key = rng.randbytes(32)
    writer, reader = FrameWriter(key), FrameReader(key, MAX_BYTES)
    bodies = [rng.randbytes(rng.choice([0, 1, 30, MAX_BYTES])) for _ in range(rng.randint(1, 6))]
    frames = [writer.seal(body) for body in bodies]
    one, other = rng.randrange(len(frames)), rng.randrange(len(frames))
    match rng.randrange(5):
        case 0:
            frames[one], frames[other] = frames[other], frames[one]
        case 1:
            frames.insert(one, frames[other])
        case 2:
            del frames[one]
        case 3:
            frames[one] = harmed(frames[one], rng)
        case _:
            frames[one] = FrameWriter(rng.randbytes(32)).seal(bodies[one])
    whole, taken = b"".join(frames), list[bytes]()
    rest, end = whole, "all taken in"
    try:
        while rest:
            length = rng.randint(1, len(rest))
            taken += reader.receive(rest[:length])
            rest = rest[length:]
    except RemoteProtocolError as error:
        end = str(error)
    assert taken == bodies[: len(taken)], "what was taken in is not what was sent"
    return len(whole), end


def mad_member(rng: random.Random) -> End:
    """A member that seals what is no envelope, or nearly one."""
    execution = ExecutionId("job", rng.randrange(3), 0)
    allocation = AllocationId("job", 1, rng.randrange(9))
    message = rng.choice(
        [
            TaskReport(execution, TaskState.FAILED, "why" * rng.randrange(50)),
            OfferedSlots(((allocation, SlotId("tm", 0)),) * rng.randrange(5)),
            RegisterTaskManager((SlotStatus(SlotId("tm", 0), allocation), SlotStatus(SlotId("tm", 1)))),
        ]
    )
    good = _CODEC.encode(Envelope(f"tm@{THERE}", FencingToken(1), f"jm@{HERE}", FencingToken(2), message))
    body = rng.choice(
        [
            lambda: harmed(good, rng),
            lambda: json.dumps(_changed(json.loads(good), rng)).encode(),
            lambda: rng.choice([b"[", b"{", b'{"a":', b'"\\ud800', b"-", b"9"]) * rng.randint(1, 5_000),
        ]
    )()
    try:
        envelope = _CODEC.decode(body)
    except RemoteProtocolError as error:
        return len(body), str(error)
    assert _CODEC.decode(_CODEC.encode(envelope)) == envelope
    return len(body), "an envelope"


def _changed(value: Any, rng: random.Random) -> Any:
    """A value of JSON with another one somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {**value, rng.choice(["more", "is", ""]): None}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    return rng.choice([None, True, -1, 0, 2**64, 0.5, 1e400, "", "x", "\ud800", [], {}, [[]], {"is": "FreeSlot"}])


KINDS: Sequence[Callable[[random.Random], End]] = (stranger, cut_connection, mad_member)


def play_control(seed: str, number: int) -> End:
    """Play the input of this number."""
    return KINDS[number % len(KINDS)](random.Random(f"{seed}:{number}"))


def control_fault(seed: str, number: int, is_weighed: bool = False) -> Fault | None:
    """Play an input; if it is to be weighed, it may take no more memory than its bytes explain."""
    try:
        if is_weighed:
            tracemalloc.start()
        num_bytes, _end = play_control(seed, number)
        if is_weighed:
            _, peak_bytes = tracemalloc.get_traced_memory()
            most = _BYTES_OF_A_WORLD + _PYTHON_FACTOR * num_bytes
            assert peak_bytes <= most, f"it took up to {peak_bytes} B, more than {most}"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault, and is told
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        return Fault(name, "".join(traceback.format_exception(error)))
    finally:
        if is_weighed:
            tracemalloc.stop()
    return None
