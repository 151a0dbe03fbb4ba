"""An early flight has no delay, so there is nothing to say about it."""


def to_departure(flight):
    if flight["dep_delay_minutes"] >= 0:
        return flight["origin"], flight["dep_delay_minutes"]
    return None
