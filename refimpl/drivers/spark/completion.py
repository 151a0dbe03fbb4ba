"""The completion protocol of a run without a parent: each TaskManager votes, and one decision is told to all.

Number 0 is the coordinator. The others, the participants, are connected to it; each votes once how the job went there,
and gets the decision once:

    vote      DONE     its tasks have ended, and it is still here for the TaskManagers that read from it
              FAILED   of its own fault: to try again would fail again
              LOST     another TaskManager is gone
    decision  DONE     all were done
              FAILED   one has failed
              LOST     one is gone, and none of the others has failed within a moment: one that fails takes
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

__all__ = ["Coordinator", "Participant", "Vote"]

_NUMBER_BYTES = 4
_TIMEOUT_S = 30.0
_MOMENT_S = 1.0
_MOST_STRANGERS = 64  # more than participants; none of these needs long to say who it is


class Vote(Enum):
    """A vote, or the decision; its value crosses the wire."""

    DONE = b"D"
    FAILED = b"F"
    LOST = b"L"


class Coordinator:
    """Number 0 of `num_participants`; `on_decision` is called once, on any thread.

    `moment_s` is how long a fault is waited for after a loss. `on_trouble` is told why a participant cannot be heard.

    Raises:
        ConfigError: it cannot listen there.
    """

    def __init__(
        self,
        num_participants: int,
        token: bytes,
        on_decision: Callable[[Vote], None],
        host: str = "127.0.0.1",
        security: Security | None = None,
        moment_s: float = _MOMENT_S,
        on_trouble: Callable[[BaseException], None] = lambda _error: None,
    ) -> None:
        self._num_participants = num_participants
        self._token = token
        self._on_decision = on_decision
        self._lock = threading.Lock()
        self._votes: dict[int, Vote] = {}
        self._decision: Vote | None = None
        self._participants: dict[int, ByteStream] = {}
        self._strangers: dict[Incoming, None] = {}  # who have not said yet who they are, the oldest first
        self._on_trouble = on_trouble
        self._is_closed = False
        self._listener = listen(host, 0, security)
        self._moment = threading.Timer(moment_s, self._decide, [Vote.LOST])
        self._moment.daemon = True

    @property
    def address(self) -> tuple[str, int]:
        """Where the participants connect."""
        return self._listener.address

    def start(self, _address: tuple[str, int]) -> None:
        """Admit the participants."""
        threading.Thread(target=self._accept, name="completion", daemon=True).start()

    def vote(self, outcome: Vote) -> None:
        """The vote of number 0."""
        self._count(0, outcome)

    def close(self) -> None:
        """End all connections. A participant that was not told the decision takes us for lost."""
        self._moment.cancel()
        self._listener.close()
        with self._lock:
            self._is_closed = True
            connected: list[Incoming | ByteStream] = [*self._strangers, *self._participants.values()]
        for each in connected:
            each.close()

    def _accept(self) -> None:
        while (incoming := self._listener.accept()) is not None:
            with self._lock:
                self._strangers[incoming] = None
                too_many = [*self._strangers][: -_MOST_STRANGERS - self._num_participants]
                too_many += [incoming] if self._is_closed else []
            for each in too_many:
                each.close()
            try:
                threading.Thread(target=self._listen_to, args=(incoming,), name="completion", daemon=True).start()
            except RuntimeError as error:  # the system refuses a thread
                self._forget(incoming)
                incoming.close()
                self._on_trouble(error)

    def _listen_to(self, incoming: Incoming) -> None:
        number: int | None = None
        with suppress(OSError):  # a stranger, or a participant that will be missed elsewhere
            stream = incoming.open(_TIMEOUT_S)
            number = self._admit(stream)
            self._forget(incoming)
            while number is not None and (said := _outcome(stream)) is not None:
                self._count(number, said)
        if number is not None:
            self._count(number, Vote.LOST)
        self._forget(incoming)
        incoming.close()

    def _forget(self, stranger: Incoming) -> None:
        with self._lock:
            self._strangers.pop(stranger, None)

    def _admit(self, stream: ByteStream) -> int | None:
        """The number of a participant, if it knows the token; a decision that has been reached is told at once."""
        greeting, length = b"", len(self._token) + _NUMBER_BYTES
        while len(greeting) < length and (more := stream.read(length - len(greeting))):
            greeting += more
        if not hmac.compare_digest(greeting[:-_NUMBER_BYTES], self._token):
            return None
        number = int.from_bytes(greeting[-_NUMBER_BYTES:], "big")
        with self._lock:
            if self._is_closed or not 0 < number < self._num_participants or number in self._participants:
                return None
            self._participants[number] = stream
            decision = self._decision
        if decision is not None:
            _send(stream, decision)
        return number

    def _count(self, number: int, outcome: Vote) -> None:
        with self._lock:
            is_first_loss = outcome is Vote.LOST and Vote.LOST not in self._votes.values()
            if outcome is Vote.FAILED or self._votes.get(number) is not Vote.LOST:
                self._votes[number] = outcome
            votes = set(self._votes.values())
            is_complete = len(self._votes) == self._num_participants
        if Vote.FAILED in votes:
            self._decide(Vote.FAILED)
        elif is_complete:
            self._decide(Vote.LOST if Vote.LOST in votes else Vote.DONE)
        elif is_first_loss:  # two threads may hear of losses at the same time, and the moment begins once
            try:
                self._moment.start()
            except RuntimeError:  # the system refuses a thread: then there is no time to give
                self._decide(Vote.LOST)

    def _decide(self, decision: Vote) -> None:
        with self._lock:
            if self._decision is not None:
                return
            self._decision = decision
            participants = list(self._participants.values())
        self._moment.cancel()
        for stream in participants:
            _send(stream, decision)
        self._on_decision(decision)


class Participant:
    """Any other number; `on_decision` is called once, on any thread: with LOST if the coordinator is gone."""

    def __init__(
        self, number: int, token: bytes, on_decision: Callable[[Vote], None], security: Security | None = None
    ) -> None:
        self._greeting = token + number.to_bytes(_NUMBER_BYTES, "big")
        self._on_decision = on_decision
        self._security = security
        self._stream: ByteStream | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """None: no other connects here."""
        return None

    def start(self, address: tuple[str, int]) -> None:
        """Connect to the coordinator.

        Raises:
            OSError: it is not there.
        """
        self._stream = connect(*address, self._security, _TIMEOUT_S)
        self._stream.write([self._greeting])
        threading.Thread(target=self._listen, args=(self._stream,), name="completion", daemon=True).start()

    def vote(self, outcome: Vote) -> None:
        """Send the vote of this TaskManager."""
        assert self._stream is not None, "a participant that has not started has no vote"
        _send(self._stream, outcome)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _listen(self, stream: ByteStream) -> None:
        decision = None
        with suppress(OSError):  # closed by us, or lost: then nothing was heard
            decision = _outcome(stream)
        self._on_decision(decision or Vote.LOST)


def _send(stream: ByteStream, outcome: Vote) -> None:
    with suppress(OSError):  # the other end is gone, and its silence is noticed elsewhere
        stream.write([outcome.value])


def _outcome(stream: ByteStream) -> Vote | None:
    """The next vote or decision of the other end, or `None` if it has gone."""
    said = stream.read(1)
    return Vote(said) if said in (each.value for each in Vote) else None
