"""When a component asks a leader to be registered, and asks again."""

from __future__ import annotations

import pytest

from refimpl.cluster import (
    ERROR_DELAY_MS,
    REFUSED_DELAY_MS,
    AskToRegister,
    CloseConnection,
    FencingToken,
    Registration,
    RegistrationState,
)

ONE, TWO = FencingToken(1), FencingToken(2)
ASK = [AskToRegister("rm", ONE)]


def trying() -> Registration:
    registration = Registration("tm-0")
    assert registration.leader_is("rm", ONE, 0) == ASK
    return registration


def registered() -> Registration:
    registration = trying()
    assert registration.accepted(ONE)
    return registration


def test_without_an_answer_it_asks_again_after_twice_the_time_up_to_half_a_minute() -> None:
    """Flink: RetryingRegistrationTest#testRetriesOnTimeouts; ClusterOptions.INITIAL_REGISTRATION_TIMEOUT, 1.11.4."""
    registration, asked_ms = trying(), []
    while len(asked_ms) < 11:
        now_ms = registration.next_deadline
        assert now_ms is not None
        assert registration.on_timeout(now_ms - 1) == []
        assert registration.on_timeout(now_ms) == ASK
        asked_ms.append(now_ms)
    waits = [after - before for before, after in zip([0.0, *asked_ms], asked_ms, strict=False)]
    assert waits == [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]


@pytest.mark.parametrize(("said", "wait_ms"), [("refused", REFUSED_DELAY_MS), ("failed", ERROR_DELAY_MS)])
def test_after_a_refusal_or_an_error_it_waits_and_begins_anew(said: str, wait_ms: float) -> None:
    """Flink: RetryingRegistrationTest#testDecline, #testRetryOnError."""
    registration = trying()
    registration.on_timeout(100)
    getattr(registration, said)(ONE, 150)
    assert (registration.state, registration.next_deadline) == (RegistrationState.WAITING, 150 + wait_ms)
    assert not registration.accepted(ONE)
    assert registration.on_timeout(150 + wait_ms) == ASK
    assert registration.next_deadline == 150 + wait_ms + 100


def test_an_answer_of_another_leader_is_none() -> None:
    registration = trying()
    registration.leader_is("rm2", TWO, 10)
    assert not registration.accepted(ONE)
    registration.refused(ONE, 20)
    registration.failed(ONE, 20)
    assert registration.state is RegistrationState.TRYING
    assert registration.accepted(TWO)
    assert not registration.accepted(TWO)
    assert registration.next_deadline is None


def test_a_newer_leader_closes_the_connection_first_and_an_older_is_no_news() -> None:
    """Flink: RegisteredRpcConnectionTest."""
    registration = registered()
    assert registration.leader_is("rm2", TWO, 50) == [CloseConnection("rm", ONE), AskToRegister("rm2", TWO)]
    assert registration.leader_is("rm", ONE, 60) == []
    assert registration.leader_is("rm2", TWO, 60) == []


def test_a_lost_connection_asks_the_same_leader_again() -> None:
    registration = registered()
    assert registration.lost(TWO, 70) == []
    assert registration.lost(ONE, 70) == [CloseConnection("rm", ONE), AskToRegister("rm", ONE)]
    assert registration.lost(ONE, 71) == []
    assert registration.next_deadline == 170


def test_when_nobody_leads_nothing_is_asked_until_somebody_does() -> None:
    registration = registered()
    assert registration.nobody_leads() == [CloseConnection("rm", ONE)]
    assert (registration.state, registration.next_deadline) == (RegistrationState.IDLE, None)
    assert registration.on_timeout(1e9) == []
    assert registration.leader_is("old", FencingToken(0), 80) == []
    assert registration.leader_is("rm", ONE, 80) == ASK
