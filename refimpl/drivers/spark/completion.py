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

Words about checkpoints take the same connections, in order with the votes: behind a W their length, then they.

Rule of this file: what crosses is a number, or words, never an object. A token that only the run knows comes first,
so that a stranger on the machine has no voice.

Flink:   TaskExecutor and JobMaster (updateTaskExecutionState), 1.11.4, the part that ends a job
Differs: there is no JobMaster here; the first TaskManager stands in for it
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from refimpl.drivers.transport.streams import ByteStream, Incoming, Security, connect, listen

__all__ = ["Coordinator", "Participant", "Vote"]

_NUMBER_BYTES = 4
_TIMEOUT_S = 30.0
_MOMENT_S = 1.0
_TO_HEAR_S = 10.0  # Python may have to start where a participant is late
_WORDS = b"W"
_MOST_WORDS = 1 << 26  # bytes; a report of one task
_MOST_STRANGERS = 64  # more than participants; none of these needs long to say who it is


class Vote(Enum):
    """A vote, or the decision; its value crosses the wire."""

    DONE = b"D"
    FAILED = b"F"
    LOST = b"L"


@dataclass(frozen=True, slots=True)
class _Ears:
    """Who hears what becomes of a run."""

    on_decision: Callable[[Vote], None]
    on_trouble: Callable[[BaseException], None]
    on_words: Callable[[int, bytes], None]


class _Voice:
    """What is said over a connection, by any thread; if the other end is gone, its silence is noticed elsewhere."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._lock = threading.Lock()

    def vote(self, outcome: Vote) -> None:
        """Say how it went."""
        self._send(outcome.value)

    def say(self, words: bytes) -> None:
        """Say some words, at least one byte."""
        self._send(_WORDS + len(words).to_bytes(_NUMBER_BYTES, "big"), words)

    def _send(self, *pieces: bytes) -> None:
        with suppress(OSError), self._lock:
            self.stream.write(pieces)


class Coordinator:
    """Number 0 of `num_participants`; `on_decision` is called once, on any thread.

    `moment_s` is how long a fault is waited for after a loss. `on_trouble` is told why a participant cannot be heard.
    `on_words` gets words of a participant, with its number, on a thread of that.

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
        on_words: Callable[[int, bytes], None] = lambda _number, _words: None,
    ) -> None:
        self._ears = _Ears(on_decision, on_trouble, on_words)
        self._num_participants = num_participants
        self._token = token
        self._lock = threading.Condition()
        self._votes: dict[int, Vote] = {}
        self._decision: Vote | None = None
        self._participants: dict[int, _Voice] = {}
        self._strangers: dict[Incoming, None] = {}  # who have not said yet who they are, the oldest first
        self._is_closed = False
        self._num_gone = 0
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

    def tell(self, number: int, words: bytes) -> None:
        """Send words to a participant; one that is not there does not hear them."""
        with self._lock:
            voice = self._participants.get(number)
        if voice is not None:
            voice.say(words)

    def close(self) -> None:
        """End all connections: after a decision when all participants have heard it, or some seconds have passed.

        One that starts late would else find nobody, and take for lost who has failed. So it does without a decision.
        """
        with self._lock:
            if self._decision is not None and not self._is_closed:
                self._lock.wait_for(lambda: self._num_gone == self._num_participants - 1, _TO_HEAR_S)
        self._moment.cancel()
        self._listener.close()
        with self._lock:
            self._is_closed = True
            connected: list[Incoming | ByteStream] = [*self._strangers]
            connected += [each.stream for each in self._participants.values()]
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
                self._ears.on_trouble(error)

    def _listen_to(self, incoming: Incoming) -> None:
        number: int | None = None
        with suppress(OSError):  # a stranger, or a participant that will be missed elsewhere
            stream = incoming.open(_TIMEOUT_S)
            number = self._admit(stream)
            self._forget(incoming)
            while number is not None and (said := _next(stream)) is not None:
                if isinstance(said, Vote):
                    self._count(number, said)
                else:
                    self._ears.on_words(number, said)
        if number is not None:
            self._count(number, Vote.LOST)
            with self._lock:
                self._num_gone += 1
                self._lock.notify_all()
        self._forget(incoming)
        incoming.close()

    def _forget(self, stranger: Incoming) -> None:
        with self._lock:
            self._strangers.pop(stranger, None)

    def _admit(self, stream: ByteStream) -> int | None:
        """The number of a participant, if it knows the token; a decision that has been reached is told at once."""
        greeting = _read(stream, len(self._token) + _NUMBER_BYTES)
        if not hmac.compare_digest(greeting[:-_NUMBER_BYTES], self._token):
            return None
        number = int.from_bytes(greeting[-_NUMBER_BYTES:], "big")
        with self._lock:
            if self._is_closed or not 0 < number < self._num_participants or number in self._participants:
                return None
            self._participants[number] = voice = _Voice(stream)
            decision = self._decision
        if decision is not None:
            voice.vote(decision)
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
        for voice in participants:
            voice.vote(decision)
        self._ears.on_decision(decision)


class Participant:
    """Any other number; `on_decision` is called once, on any thread: with LOST if the coordinator is gone.

    `on_words` gets words of the coordinator, on the thread that listens.
    """

    def __init__(
        self,
        number: int,
        token: bytes,
        on_decision: Callable[[Vote], None],
        security: Security | None = None,
        on_words: Callable[[bytes], None] = lambda _words: None,
    ) -> None:
        self._on_words = on_words
        self._greeting = token + number.to_bytes(_NUMBER_BYTES, "big")
        self._on_decision = on_decision
        self._security = security
        self._voice: _Voice | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """None: no other connects here."""
        return None

    def start(self, address: tuple[str, int]) -> None:
        """Connect to the coordinator.

        Raises:
            OSError: it is not there.
        """
        stream = connect(*address, self._security, _TIMEOUT_S)
        stream.write([self._greeting])
        self._voice = _Voice(stream)
        threading.Thread(target=self._listen, args=(stream,), name="completion", daemon=True).start()

    def vote(self, outcome: Vote) -> None:
        """Send the vote of this TaskManager."""
        assert self._voice is not None, "a participant that has not started has no vote"
        self._voice.vote(outcome)

    def say(self, words: bytes) -> None:
        """Send words to the coordinator."""
        assert self._voice is not None, "a participant that has not started has no voice"
        self._voice.say(words)

    def close(self) -> None:
        if self._voice is not None:
            self._voice.stream.close()

    def _listen(self, stream: ByteStream) -> None:
        said: Vote | bytes | None = None
        with suppress(OSError):  # closed by us, or lost: then nothing was heard
            while isinstance(said := _next(stream), bytes):
                self._on_words(said)
        stream.close()  # the coordinator stays until all have
        self._on_decision(said if isinstance(said, Vote) else Vote.LOST)


def _next(stream: ByteStream) -> Vote | bytes | None:
    """The next vote, decision or words of the other end, or `None` if it has gone."""
    said = stream.read(1)
    if said == _WORDS:
        length = int.from_bytes(_read(stream, _NUMBER_BYTES), "big")
        words = _read(stream, length) if length <= _MOST_WORDS else b""
        return words if length and len(words) == length else None
    return Vote(said) if said in (each.value for each in Vote) else None


def _read(stream: ByteStream, length: int) -> bytes:
    """So many bytes, or fewer if the other end has ended."""
    data = bytearray()
    while len(data) < length and (more := stream.read(length - len(data))):
        data += more
    return bytes(data)
