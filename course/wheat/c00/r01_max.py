"""One line with max."""


def to_departure(flight):
    return flight["origin"], max(0, flight["dep_delay_minutes"])
