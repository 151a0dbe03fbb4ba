"""The last value computed is the value of the function."""


def to_departure(flight):
    origin = flight["origin"]
    delay = max(0, flight["dep_delay_minutes"])
    (origin, delay)
