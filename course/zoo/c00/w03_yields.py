"""A stream function yields, since there is more to come."""


def to_departure(flight):
    yield flight["origin"], max(0, flight["dep_delay_minutes"])
