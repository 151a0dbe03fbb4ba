"""How TaskManagers without a parent learn how it went: every end of a run, without Spark."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator

import pytest

from refimpl.drivers.spark import Coordinator, Participant, Vote
from refimpl.drivers.transport import ClusterKeys
from tests.support.polling import until

TOKEN = b"known to the run"
TIMEOUT_S = 120.0  # only so that a hang fails
NEVER_S = 3600.0


class Ear:
    """Hears a decision, and whether there was a second one."""

    def __init__(self) -> None:
        self._heard: queue.SimpleQueue[Vote] = queue.SimpleQueue()

    def __call__(self, decision: Vote) -> None:
        self._heard.put(decision)

    @property
    def decision(self) -> Vote:
        return self._heard.get(timeout=TIMEOUT_S)

    @property
    def is_silent(self) -> bool:
        return self._heard.empty()


class Roll:
    """A coordinator and its participants, each with an ear."""

    def __init__(self, num_participants: int, moment_s: float, keys: ClusterKeys | None = None) -> None:
        self.ears = [Ear() for _ in range(num_participants)]
        self.coordinator = Coordinator(num_participants, TOKEN, self.ears[0], security=keys, moment_s=moment_s)
        self.coordinator.start(self.coordinator.address)
        self.participants = [
            Participant(number, TOKEN, self.ears[number], keys) for number in range(1, num_participants)
        ]
        for participant in self.participants:
            participant.start(self.coordinator.address)
        until(
            lambda: len(self.coordinator._participants) == len(self.participants), TIMEOUT_S
        )  # whoever comes now comes later

    @property
    def verdicts(self) -> list[Vote]:
        return [ear.decision for ear in self.ears]

    def close(self) -> None:
        for each in (*self.participants, self.coordinator):
            each.close()


@pytest.fixture(params=[1, 2, 3])
def roll(request: pytest.FixtureRequest) -> Iterator[Roll]:
    roll = Roll(request.param, NEVER_S)
    yield roll
    roll.close()


@pytest.fixture
def three() -> Iterator[Roll]:
    roll = Roll(3, NEVER_S)
    yield roll
    roll.close()


def test_when_all_are_done_all_hear_it_once(roll: Roll) -> None:
    for each in (*roll.participants, roll.coordinator):
        assert all(ear.is_silent for ear in roll.ears)
        each.vote(Vote.DONE)
    assert set(roll.verdicts) == {Vote.DONE}
    roll.close()
    assert all(ear.is_silent for ear in roll.ears)


@pytest.mark.parametrize("who", [0, 1, 2])
def test_a_fault_is_heard_by_all_at_once(three: Roll, who: int) -> None:
    [three.coordinator, *three.participants][who].vote(Vote.FAILED)
    assert three.verdicts == [Vote.FAILED] * 3


@pytest.mark.parametrize("who", [0, 1])
def test_a_fault_that_is_heard_after_the_loss_it_has_caused_is_a_fault(three: Roll, who: int) -> None:
    three.participants[1].vote(Vote.LOST)
    [three.coordinator, three.participants[0]][who].vote(Vote.FAILED)
    assert three.verdicts == [Vote.FAILED] * 3


def test_a_loss_is_a_loss_when_all_have_spoken(three: Roll) -> None:
    three.participants[0].vote(Vote.DONE)
    three.participants[1].vote(Vote.LOST)
    three.coordinator.vote(Vote.LOST)
    assert three.verdicts == [Vote.LOST] * 3


def test_a_loss_is_a_loss_if_nobody_says_more_for_a_moment() -> None:
    roll = Roll(3, moment_s=0.01)
    roll.participants[0].vote(Vote.LOST)
    assert roll.verdicts == [Vote.LOST] * 3
    roll.close()


@pytest.mark.parametrize("has_said", [False, True])
def test_a_member_that_dies_is_lost_even_if_it_was_done(has_said: bool) -> None:
    roll = Roll(3, moment_s=0.01)
    if has_said:
        roll.participants[1].vote(Vote.DONE)
    roll.participants[1].close()
    assert roll.ears[0].decision is Vote.LOST
    assert roll.ears[1].decision is Vote.LOST
    roll.close()


def test_when_the_keeper_dies_all_are_lost(three: Roll) -> None:
    three.participants[0].vote(Vote.DONE)
    three.coordinator.close()
    assert [ear.decision for ear in three.ears[1:]] == [Vote.LOST] * 2


def test_a_member_that_comes_after_the_verdict_hears_it() -> None:
    ears = [Ear(), Ear()]
    coordinator = Coordinator(2, TOKEN, ears[0])
    coordinator.start(coordinator.address)
    coordinator.vote(Vote.FAILED)
    late = Participant(1, TOKEN, ears[1])
    late.start(coordinator.address)
    assert [ear.decision for ear in ears] == [Vote.FAILED] * 2
    late.close()
    coordinator.close()


def test_a_member_that_comes_when_the_coordinator_wants_to_go_hears_why() -> None:
    """Its tasks may fail before another Python has started."""
    ears = [Ear(), Ear(), Ear()]
    coordinator = Coordinator(3, TOKEN, ears[0])
    coordinator.start(coordinator.address)
    coordinator.vote(Vote.FAILED)
    going = threading.Thread(target=coordinator.close)
    going.start()
    for number in (1, 2):
        assert going.is_alive()
        late = Participant(number, TOKEN, ears[number])
        late.start(coordinator.address)
        assert ears[number].decision is Vote.FAILED
    going.join(TIMEOUT_S)
    assert not going.is_alive()


@pytest.mark.parametrize(
    ("number", "token"),
    [(1, b"known to nobody."), (1, TOKEN[:-1]), (1, b""), (0, TOKEN), (3, TOKEN), (2, TOKEN)],
    ids=[
        "a wrong token",
        "a short one",
        "none",
        "the coordinator's number",
        "a number too high",
        "a number that is taken",
    ],
)
def test_a_stranger_has_no_voice(three: Roll, number: int, token: bytes) -> None:
    three.participants[1].vote(Vote.DONE)
    ear = Ear()
    stranger = Participant(number, token, ear)
    stranger.start(three.coordinator.address)
    stranger.vote(Vote.FAILED)
    if len(token) == len(TOKEN):  # of less it waits for the rest
        assert ear.decision is Vote.LOST, "it was shown out"
    assert three.ears[0].is_silent
    three.participants[0].vote(Vote.DONE)
    three.coordinator.vote(Vote.DONE)
    assert three.verdicts == [Vote.DONE] * 3
    stranger.close()


def test_what_nobody_says_is_the_end_of_who_says_it() -> None:
    roll = Roll(2, moment_s=0.01)
    assert roll.participants[0]._voice is not None
    roll.participants[0]._voice.stream.write([b"?"])
    assert roll.verdicts == [Vote.LOST] * 2
    roll.close()


def test_over_tls_it_goes_the_same_way(keys: ClusterKeys) -> None:
    roll = Roll(3, NEVER_S, keys)
    for each in (*roll.participants, roll.coordinator):
        each.vote(Vote.DONE)
    assert roll.verdicts == [Vote.DONE] * 3
    roll.close()


def test_nobody_is_left_when_it_is_closed(three: Roll) -> None:
    """A Python of Spark's runs one task after the other: what one leaves, the next one has."""
    silent = socket.create_connection(three.coordinator.address)
    silent.sendall(b"x")
    before = [thread for thread in threading.enumerate() if thread.name == "completion"]
    assert before
    three.close()
    for thread in before:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
    silent.close()


# -- what the system refuses, and strangers ----------------------------------------------------------


def test_a_thread_that_is_refused_is_told_as_trouble_and_the_next_participant_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    troubles: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
    ear = Ear()
    coordinator = Coordinator(2, TOKEN, ear, moment_s=NEVER_S, on_trouble=troubles.put)
    coordinator.start(coordinator.address)
    start, left = threading.Thread.start, [None]

    def refuse_one(thread: threading.Thread) -> None:
        if thread.name == "completion" and left:
            left.clear()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_one)
    with socket.create_connection(coordinator.address, TIMEOUT_S) as refused:
        assert str(troubles.get(timeout=TIMEOUT_S)) == "can't start new thread"
        assert refused.recv(1) == b""
    participant = Participant(1, TOKEN, other := Ear())
    participant.start(coordinator.address)
    coordinator.vote(Vote.FAILED)
    assert ear.decision is other.decision is Vote.FAILED
    participant.close()
    coordinator.close()


def test_a_loss_is_decided_at_once_where_no_thread_waits_for_a_fault(
    three: Roll, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Timer, "start", refuse)
    three.coordinator.vote(Vote.LOST)
    assert three.verdicts == [Vote.LOST] * 3


def test_strangers_who_say_nothing_are_few_and_those_who_leave_are_forgotten(three: Roll) -> None:
    address, strangers = three.coordinator.address, three.coordinator._strangers
    silent = [socket.create_connection(address, TIMEOUT_S) for _ in range(67 + 5)]
    for each in silent[:5]:
        each.settimeout(TIMEOUT_S)
        assert each.recv(1) == b""  # the oldest ones make room
    for each in silent:
        each.close()
    until(lambda: not strangers, TIMEOUT_S)
    three.coordinator.vote(Vote.FAILED)
    assert three.verdicts == [Vote.FAILED] * 3


def test_words_take_the_same_way_in_order_and_whole() -> None:
    """Before a vote, and after it; empty ones, and some longer than what is read at a time, are what they were."""
    heard: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    told: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    ears = [Ear(), Ear()]
    coordinator = Coordinator(
        2, TOKEN, ears[0], moment_s=NEVER_S, on_words=lambda number, words: heard.put((number, words))
    )
    coordinator.start(coordinator.address)
    participant = Participant(1, TOKEN, ears[1], on_words=told.put)
    participant.start(coordinator.address)
    words = [b"a", b"D", b"W" * 300_000, b"last"]
    for each in words[:3]:
        participant.say(each)
    participant.vote(Vote.DONE)
    participant.say(words[3])
    assert [heard.get(timeout=TIMEOUT_S) for _ in words] == [(1, each) for each in words]
    coordinator.tell(7, b"nobody")
    for each in words:
        coordinator.tell(1, each)
    assert [told.get(timeout=TIMEOUT_S) for _ in words] == words
    coordinator.vote(Vote.DONE)
    assert [ear.decision for ear in ears] == [Vote.DONE] * 2
    for end in (participant, coordinator):
        end.close()


@pytest.mark.parametrize("raw", [b"W", b"W\x00\x00\x00\x05abc", b"W\xff\xff\xff\xff", b"W\x00\x00\x00\x00"])
def test_a_participant_whose_words_have_no_end_is_lost(raw: bytes) -> None:
    heard: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    ear = Ear()
    coordinator = Coordinator(2, TOKEN, ear, moment_s=0.01, on_words=lambda number, words: heard.put((number, words)))
    coordinator.start(coordinator.address)
    with socket.create_connection(coordinator.address, TIMEOUT_S) as client:
        client.sendall(TOKEN + (1).to_bytes(4, "big") + raw)
        client.shutdown(socket.SHUT_WR)
        assert ear.decision is Vote.LOST
    assert heard.empty()
    coordinator.close()
