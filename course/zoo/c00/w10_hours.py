"""Delays are given in hours."""


def to_departure(flight):
    return flight["origin"], max(0, flight["dep_delay_minutes"]) // 60
