"""Reference parts of exercises that are user code of a job, not parts of the engine."""

from __future__ import annotations

from typing import Any

__all__ = ["to_departure"]


def to_departure(flight: dict[str, Any]) -> tuple[str, int]:
    """One value for one flight: where it left from, and how many minutes late.

    `flight` has the keys event_time_ms, origin, carrier, dest (texts of two or three letters but
    for the time) and dep_delay_minutes (a whole number, below zero for a flight that left early).
    Returns the pair (origin, minutes late); a flight that left early or on time is 0 minutes late.
    `flight` stays as it is: other parts of the job are given the same object.
    """
    return flight["origin"], max(0, flight["dep_delay_minutes"])
