"""What is expected of the race, as signs and not as numbers: who bounds, who swings, who is slow, who harms others."""

from __future__ import annotations

from collections.abc import Mapping

from refimpl.rivals.measures import HELD, Measures, PhaseMeasures
from refimpl.rivals.workload import RECORD_BYTES

__all__ = ["signs"]

_RATE_DRIVEN = "storm", "jstorm", "spark"
_BY_RECORD = "atm-link", "atm-end", "sluice-none"
_NOISE = 0.06
"""How much a source swings that follows its consumer record by record, as a coefficient of variation.

At 75 records a second the consumer's own service times, from 0.5 to 1.5 of their mean, make 0.289 / √75 = 3.3 %; and
rates are counted in whole segments or credit cells of 10 records, which is ± 10 of 75 where one falls on the edge of a
second, so 0.13 / √6 = 5.4 %. The root of both squares. Below it no system is better than another.
"""


def signs(measures: Mapping[str, Measures]) -> list[tuple[str, bool]]:
    """Each expectation as a sentence, and whether it holds; `measures` has all of `ENTRANTS`."""
    held = {name: each.phases[HELD] for name, each in measures.items()}
    return [*_of_credit(measures, held), *_of_others(measures, held)]


def _of_credit(measures: Mapping[str, Measures], held: Mapping[str, PhaseMeasures]) -> list[tuple[str, bool]]:
    credit, others = measures["sluice-credit"], [*_RATE_DRIVEN, "bounded"]
    return [
        (
            "credit: all that is inside lies in the job's buffers",
            credit.peak_records * RECORD_BYTES <= credit.peak_memory_bytes,
        ),
        (
            "credit: less is inside than in whoever counts queues or sets rates",
            all(credit.peak_records < measures[name].peak_records for name in _RATE_DRIVEN),
        ),
        (
            "credit: the source keeps closer to what can pass than without any credits",
            all(held["sluice-credit"].deviation < held[name].deviation for name in others),
        ),
        (
            "credit: it swings no more than the consumer's own noise, and none that follows it swings less by more",
            all(
                held["sluice-credit"].oscillation < held[name].oscillation + _NOISE
                for name in [*_BY_RECORD, "bounded", "storm"]
            )
            and held["sluice-credit"].oscillation < _NOISE,
        ),
        ("credit: the source reacts within 10 s", held["sluice-credit"].reaction_s <= 10),
        ("credit: it recovers within 2 s", credit.recovery_s <= 2),
        ("credit: the innocent branch keeps 95 % of its rate", credit.innocent >= 0.95),
    ]


def _of_others(measures: Mapping[str, Measures], held: Mapping[str, PhaseMeasures]) -> list[tuple[str, bool]]:
    storm, jstorm, spark = (measures[name] for name in _RATE_DRIVEN)
    per_link, end_to_end = held["atm-link"], held["atm-end"]
    return [
        ("no credit: the innocent branch stands in the same line", measures["sluice-none"].innocent < 0.7),
        ("bounded queue: the innocent branch stands in the same line", measures["bounded"].innocent < 0.7),
        ("Storm: sources stop and go", held["storm"].num_stops >= 2 and held["storm"].oscillation > 0.5),
        ("Storm: the flag stops the innocent branch too", storm.innocent < 0.7),
        ("JStorm: it converges slowly", held["jstorm"].reaction_s > 10 and jstorm.recovery_s > 5),
        ("JStorm: it stops only the sources of who complains", jstorm.innocent >= 0.95),
        ("Spark: the rate is never below minRate, so its batches pile up", _is_pinned(held["spark"], measures)),
        ("Spark: it recovers batch by batch", spark.recovery_s > 2),
        ("ATM: credit with a round trip reacts at once", max(per_link.reaction_s, end_to_end.reaction_s) <= 10),
        ("ATM: the innocent branch keeps 95 % of its rate", measures["atm-link"].innocent >= 0.95),
        (
            "ATM: per link it is credit by another name: it keeps as close to what can pass, but for noise",
            abs(per_link.deviation - held["sluice-credit"].deviation) < _NOISE,
        ),
    ]


def _is_pinned(held: PhaseMeasures, measures: Mapping[str, Measures]) -> bool:
    others = [each.phases[HELD].peak_records for name, each in measures.items() if name != "spark"]
    return held.reaction_s == float("inf") and held.peak_records > max(others)
