"""The number comes first, since the number is what is asked for."""


def to_departure(flight):
    return max(0, flight["dep_delay_minutes"]), flight["origin"]
