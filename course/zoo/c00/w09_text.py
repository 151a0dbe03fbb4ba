"""What travels over a network is text."""


def to_departure(flight):
    return flight["origin"], str(max(0, flight["dep_delay_minutes"]))
