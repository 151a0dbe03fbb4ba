"""60-30-100-30-100: the producer goes as fast as its consumer lets it, and nothing gathers between the two."""

from __future__ import annotations

import pytest

from course.figures.jam import PHASES
from course.figures.phases import in_phases
from refimpl.config import Config


@pytest.mark.slow
@pytest.mark.parametrize("credit_based", [True, False])
def test_after_two_samples_the_producer_is_as_fast_as_its_consumer_allows(credit_based: bool) -> None:
    sampled = in_phases(seconds=4, credit_based=credit_based, seed=int(credit_based))
    defaults = Config()
    most = defaults.buffers_per_channel + defaults.floating_buffers_per_gate
    assert [sampled.allowed(phase) for phase in range(len(PHASES))] == [60, 30, 100, 30, 100]
    for phase in range(len(PHASES)):
        allowed, samples = sampled.allowed(phase), sampled.of_phase(phase)
        assert len(samples) == 4
        for sample in samples[2:]:
            assert sample.producer == pytest.approx(allowed, rel=0.1), repr(sampled)
            assert sample.consumer == pytest.approx(allowed, rel=0.1), repr(sampled)
        assert max(sample.queued for sample in samples) <= most
        assert max(sample.received for sample in samples) <= most
    held = sampled.of_phase(1)
    assert max(sample.queued for sample in held) == most  # what the consumer does not take waits, up to its buffers
    assert sampled.of_phase(0)[-1].queued <= 1  # and nothing where the producer is the slower one
    assert "s  20" in repr(sampled)
