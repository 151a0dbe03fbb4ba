"""When a component begins to lead, and when it stops."""

from __future__ import annotations

import random

from refimpl.cluster import (
    FencingToken,
    LeaderContender,
    LeaderState,
    Publish,
    StartLeading,
    StopLeading,
)

ONE, TWO, THREE = (FencingToken(epoch) for epoch in (1, 2, 3))


def test_it_leads_from_the_confirmation_on_and_not_before() -> None:
    contender = LeaderContender("rm")
    assert contender.grant(ONE) == [Publish("rm", ONE)]
    assert contender.state is LeaderState.CONFIRMING
    assert contender.confirmed(TWO) == []
    assert contender.confirmed(ONE) == [StartLeading(ONE)]
    assert contender.confirmed(ONE) == []


def test_a_newer_grant_ends_what_the_older_began() -> None:
    contender = LeaderContender("rm")
    contender.grant(ONE)
    contender.confirmed(ONE)
    assert contender.grant(TWO) == [StopLeading(ONE), Publish("rm", TWO)]
    assert contender.confirmed(ONE) == []
    assert contender.confirmed(TWO) == [StartLeading(TWO)]


def test_a_grant_that_was_overtaken_is_no_news_even_after_the_newer_was_revoked() -> None:
    contender = LeaderContender("rm")
    contender.grant(THREE)
    assert contender.grant(TWO) == []
    contender.confirmed(THREE)
    assert contender.grant(THREE) == []
    assert contender.revoke() == [StopLeading(THREE)]
    assert contender.grant(TWO) == []
    assert contender.state is LeaderState.FOLLOWER


def test_a_confirmation_after_the_revocation_counts_for_nothing() -> None:
    contender = LeaderContender("rm")
    contender.grant(ONE)
    assert contender.revoke() == []
    assert contender.confirmed(ONE) == []
    assert contender.state is LeaderState.FOLLOWER


def test_in_any_order_of_events_starts_and_stops_alternate_and_epochs_rise() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        contender, led, begun = LeaderContender("rm"), None, -1
        for _ in range(40):
            token = FencingToken(rng.randrange(6))
            match rng.choice(["grant", "confirm", "revoke"]):
                case "grant":
                    decisions = contender.grant(token)
                case "confirm":
                    decisions = contender.confirmed(token)
                case _:
                    decisions = contender.revoke()
            for decision in decisions:
                if isinstance(decision, StopLeading):
                    assert decision.token == led, f"seed {seed}"
                    led = None
                elif isinstance(decision, StartLeading):
                    assert led is None, f"seed {seed}"
                    assert decision.token.epoch > begun, f"seed {seed}"
                    led, begun = decision.token, decision.token.epoch
            assert (contender.state is LeaderState.LEADER) == (led is not None), f"seed {seed}"
