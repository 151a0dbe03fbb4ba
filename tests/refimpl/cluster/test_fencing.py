"""Who is let in: only who means this leadership, and never one that speaks for an older one than was heard."""

from __future__ import annotations

import pytest

from refimpl.cluster import Envelope, Fence, FencingToken
from refimpl.errors import LocalUsageError

FOUR, FIVE, OTHER_FIVE = FencingToken(4), FencingToken(5), FencingToken(5, b"x" * 16)


def envelope(sender: FencingToken = FOUR, receiver: FencingToken | None = FIVE, to: str = "rm") -> Envelope[str]:
    return Envelope("jm", sender, to, receiver, "message")


@pytest.fixture
def fence() -> Fence:
    fence = Fence("rm")
    fence.token = FIVE
    return fence


def test_who_means_this_leadership_is_let_in(fence: Fence) -> None:
    """Flink: FencedRpcEndpointTest#testFencing."""
    assert fence.check(envelope()) is None


@pytest.mark.parametrize("meant", [FOUR, OTHER_FIVE, FencingToken(6), None])
def test_another_token_or_none_is_refused_and_both_epochs_are_named(fence: Fence, meant: FencingToken | None) -> None:
    """Flink: FencedRpcEndpointTest#testFencing."""
    refusal = fence.check(envelope(receiver=meant))
    assert refusal is not None
    assert "epoch 5" in refusal.why
    assert (str(meant) if meant else "no epoch at all") in refusal.why


def test_who_leads_nothing_opens_no_message_whatever_it_names() -> None:
    """Flink: FencedRpcEndpointTest."""
    for meant in (None, FIVE):
        refusal = Fence("rm").check(envelope(receiver=meant))
        assert refusal is not None
        assert "leads nothing" in refusal.why


def test_a_message_for_another_address_is_refused(fence: Fence) -> None:
    refusal = fence.check(envelope(to="dispatcher"))
    assert refusal is not None
    assert "is for dispatcher" in refusal.why


def test_of_one_sender_the_epochs_never_fall(fence: Fence) -> None:
    assert fence.check(envelope(FOUR)) is None
    assert fence.check(envelope(FIVE)) is None
    for zombie in (FOUR, OTHER_FIVE):
        refusal = fence.check(envelope(zombie))
        assert refusal is not None
        assert "epoch 5" in refusal.why
    assert fence.check(envelope(FIVE)) is None
    fence.forget("jm")
    assert fence.check(envelope(FOUR)) is None


def test_what_was_refused_is_not_remembered(fence: Fence) -> None:
    assert fence.check(envelope(FencingToken(9), receiver=None)) is not None
    assert fence.check(envelope(FOUR)) is None


@pytest.mark.parametrize(("epoch", "nonce"), [(-1, bytes(16)), (0, bytes(15))])
def test_what_is_no_token_is_refused(epoch: int, nonce: bytes) -> None:
    with pytest.raises(LocalUsageError, match="16 bytes"):
        FencingToken(epoch, nonce)
