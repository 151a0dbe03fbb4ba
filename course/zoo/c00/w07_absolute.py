"""A delay is the distance from the plan, in either direction."""


def to_departure(flight):
    return flight["origin"], abs(flight["dep_delay_minutes"])
