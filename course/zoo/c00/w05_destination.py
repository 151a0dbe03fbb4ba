"""A flight belongs to the airport it flies to."""


def to_departure(flight):
    return flight["dest"], max(0, flight["dep_delay_minutes"])
