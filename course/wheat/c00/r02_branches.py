"""Two branches and a name for each thing."""


def late(minutes: int) -> int:
    """Minutes late, never below zero."""
    if minutes > 0:
        return minutes
    return 0


def to_departure(flight: dict) -> tuple[str, int]:
    origin: str = flight.get("origin")
    return (origin, late(flight.get("dep_delay_minutes")))
