"""The delay is limited by 0."""


def to_departure(flight):
    return flight["origin"], min(0, flight["dep_delay_minutes"])
