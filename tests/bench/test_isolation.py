"""The isolation benchmark: what it computes from samples, and that its job has the shape it claims."""

from __future__ import annotations

import pytest

from refimpl.job.deployment import Deployment
from tests.bench.isolation import NUM_CHANNELS, Readers, Sample, job, main, paper, rates, table


def samples(slow_rate: int, others_after: int) -> list[Sample]:
    """100 buffers a second for everybody up to the change; then as given."""
    times = [n / 10 for n in range(-30, 31)]
    return [
        Sample(t, tuple(round(300 + 100 * min(t, 0) + max(t, 0) * rate) for rate in (slow_rate, *[others_after] * 3)))
        for t in times
    ]


@pytest.mark.parametrize("credit_based", [True, False])
def test_its_four_channels_cross_from_one_task_manager_to_the_other(credit_based: bool) -> None:
    environment = job(Readers(), credit_based=credit_based)
    graph = environment.execution_graph(2)
    plans = [plan for vertex in graph.vertices for plans in graph.inputs(vertex) for plan in plans]
    assert [(plan.producer.task_manager, plan.consumer.task_manager) for plan in plans] == [(0, 1)] * NUM_CHANNELS


@pytest.mark.parametrize("credit_based", [True, False])
def test_its_four_channels_share_one_connection(credit_based: bool) -> None:
    """Without credits each exchange has a connection of its own; four exchanges would not be in each other's way."""
    deployment = Deployment(job(Readers(), credit_based=credit_based).execution_graph(2), 1)
    try:
        assert [len(reads) for reads in deployment.shuffle.remote_reads.values()] == [NUM_CHANNELS]
    finally:
        deployment.close()


def test_rates_are_those_before_and_those_after_a_second_to_settle() -> None:
    assert rates(samples(1, 90), slow=False) == pytest.approx([100] * 4, rel=0.05)
    assert rates(samples(10, 90), slow=True) == pytest.approx([10, 90, 90, 90], rel=0.05)


def test_what_is_kept_is_compared_within_a_round() -> None:
    found = table({True: [samples(1, 100), samples(1, 50)], False: [samples(1, 1)]})
    assert found["with credits"]["kept"] == pytest.approx([1.0, 0.5], rel=0.05)
    assert found["without credits"]["others_after_per_s"] == pytest.approx(1, rel=0.1)


def test_the_picture_is_the_same_for_the_same_samples_and_names_each_kind_of_reader_once() -> None:
    runs = {True: [samples(1, 100)], False: [samples(1, 1)]}
    first, second = (paper(runs).svg() for _ in range(2))
    assert first == second
    drawn = first[first.index("</desc>") :]
    assert (drawn.count("the slow reader"), drawn.count("the three others")) == (2, 2)  # in two panels


@pytest.mark.parametrize(
    "arguments",
    [["--rounds", "0"], ["--seconds", "1"], ["--seconds", "soon"], ["--picture", "a.gif"], ["--picture", "no/a.svg"]],
)
def test_what_measures_nothing_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "error" in capsys.readouterr().err
