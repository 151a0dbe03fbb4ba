"""How the TaskManagers of a run without a parent learn how it went for all of them.

Number 0 keeps the roll. The others are connected to it; each says once how it went there, and all hear
once how it went altogether:

    says      DONE     its tasks have ended, and it is still here for those who read from it
              FAILED   of its own fault: to try again would fail again
              LOST     somebody else is gone
    hears     DONE     all were done
              FAILED   one has failed
              LOST     one is gone, and none of the others has failed within a moment: whoever fails takes
                       its neighbours' connections with it, so the fault is often heard after the loss

Rule of this file: what crosses is a number, never an object. A token that only the run knows comes first,
so that a stranger on the machine has no voice.

Flink:   TaskExecutor and JobMaster (updateTaskExecutionState), 1.11.4, the part that ends a job
Differs: there is no JobMaster here; the first TaskManager stands in for it
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

from refimpl.drivers.transport.streams import ByteStream, Incoming, Security, connect, listen

__all__ = ["Keeper", "Member", "Outcome"]

_NUMBER_BYTES = 4
_TIMEOUT_S = 30.0
_MOMENT_S = 1.0


class Outcome(Enum):
    """How it went, here or altogether; the value is what crosses the wire."""

    DONE = b"D"
    FAILED = b"F"
    LOST = b"L"


class Keeper:
    """Number 0 of `num_members`; `on_verdict` is called once, on any thread.

    `moment_s` is how long a fault is waited for after a loss.

    Raises:
        ConfigError: it cannot listen there.
    """

    def __init__(
        self,
        num_members: int,
        token: bytes,
        on_verdict: Callable[[Outcome], None],
        host: str = "127.0.0.1",
        security: Security | None = None,
        moment_s: float = _MOMENT_S,
    ) -> None:
        self._num_members = num_members
        self._token = token
        self._on_verdict = on_verdict
        self._lock = threading.Lock()
        self._said: dict[int, Outcome] = {}
        self._verdict: Outcome | None = None
        self._members: dict[int, ByteStream] = {}
        self._connected: list[Incoming | ByteStream] = []
        self._is_closed = self._has_lost_one = False
        self._listener = listen(host, 0, security)
        self._moment = threading.Timer(moment_s, self._judge, [Outcome.LOST])
        self._moment.daemon = True

    @property
    def address(self) -> tuple[str, int]:
        """Where the members connect."""
        return self._listener.address

    def start(self, _address: tuple[str, int]) -> None:
        """Let the members in."""
        threading.Thread(target=self._accept, name="roll call", daemon=True).start()

    def say(self, outcome: Outcome) -> None:
        """How it went for number 0."""
        self._hear(0, outcome)

    def close(self) -> None:
        """Hear nobody any more. Those who were not told the verdict take us for lost."""
        self._moment.cancel()
        self._listener.close()
        with self._lock:
            self._is_closed = True
            connected, self._connected = self._connected, []
        for each in connected:
            each.close()

    def _accept(self) -> None:
        while (incoming := self._listener.accept()) is not None:
            threading.Thread(target=self._listen_to, args=(incoming,), name="roll call", daemon=True).start()

    def _listen_to(self, incoming: Incoming) -> None:
        with suppress(OSError):  # a stranger, or a member that will be missed elsewhere
            self._keep(incoming)
            stream = incoming.open(_TIMEOUT_S)
            self._keep(stream)
            number = self._admit(stream)
            if number is None:
                stream.close()
                return
            try:
                while (said := _outcome(stream)) is not None:
                    self._hear(number, said)
            finally:
                self._hear(number, Outcome.LOST)

    def _keep(self, connected: Incoming | ByteStream) -> None:
        """Remember it for `close`."""
        with self._lock:
            if not self._is_closed:
                self._connected.append(connected)
                return
        connected.close()

    def _admit(self, stream: ByteStream) -> int | None:
        """Who has connected, if it knows the token; a verdict that has been reached is told at once."""
        greeting, length = b"", len(self._token) + _NUMBER_BYTES
        while len(greeting) < length and (more := stream.read(length - len(greeting))):
            greeting += more
        if not hmac.compare_digest(greeting[:-_NUMBER_BYTES], self._token):
            return None
        number = int.from_bytes(greeting[-_NUMBER_BYTES:], "big")
        with self._lock:
            if not 0 < number < self._num_members or number in self._members:
                return None
            self._members[number] = stream
            verdict = self._verdict
        if verdict is not None:
            _tell(stream, verdict)
        return number

    def _hear(self, number: int, outcome: Outcome) -> None:
        with self._lock:
            self._said[number] = outcome
            said = set(self._said.values())
            is_complete = len(self._said) == self._num_members
            is_first_loss = outcome is Outcome.LOST and not self._has_lost_one
            self._has_lost_one |= is_first_loss
        if Outcome.FAILED in said:
            self._judge(Outcome.FAILED)
        elif is_complete:
            self._judge(Outcome.LOST if Outcome.LOST in said else Outcome.DONE)
        elif is_first_loss:  # two threads may hear of losses at the same time, and the moment begins once
            self._moment.start()

    def _judge(self, verdict: Outcome) -> None:
        with self._lock:
            if self._verdict is not None:
                return
            self._verdict = verdict
            members = list(self._members.values())
        self._moment.cancel()
        for stream in members:
            _tell(stream, verdict)
        self._on_verdict(verdict)


class Member:
    """Any other number; `on_verdict` is called once, on any thread: also if the keeper is gone, with LOST."""

    def __init__(
        self, number: int, token: bytes, on_verdict: Callable[[Outcome], None], security: Security | None = None
    ) -> None:
        self._greeting = token + number.to_bytes(_NUMBER_BYTES, "big")
        self._on_verdict = on_verdict
        self._security = security
        self._stream: ByteStream | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """Nobody connects here."""
        return None

    def start(self, address: tuple[str, int]) -> None:
        """Connect to the keeper.

        Raises:
            OSError: it is not there.
        """
        self._stream = connect(*address, self._security, _TIMEOUT_S)
        self._stream.write([self._greeting])
        threading.Thread(target=self._listen, args=(self._stream,), name="roll call", daemon=True).start()

    def say(self, outcome: Outcome) -> None:
        """How it went here."""
        assert self._stream is not None, "a member that has not started says nothing"
        _tell(self._stream, outcome)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _listen(self, stream: ByteStream) -> None:
        verdict = None
        with suppress(OSError):  # closed by us, or lost: then nothing was heard
            verdict = _outcome(stream)
        self._on_verdict(verdict or Outcome.LOST)


def _tell(stream: ByteStream, outcome: Outcome) -> None:
    with suppress(OSError):  # whoever is gone hears nothing, and is missed by whoever listens to it
        stream.write([outcome.value])


def _outcome(stream: ByteStream) -> Outcome | None:
    """What the other end says next, or `None` if it has gone."""
    said = stream.read(1)
    return Outcome(said) if said in (each.value for each in Outcome) else None
