"""A map may send on as many values as it likes, in a list."""


def to_departure(flight):
    late = max(0, flight["dep_delay_minutes"])
    return [(flight["origin"], late), (flight["dest"], late)]
