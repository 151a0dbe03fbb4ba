"""The flight is a good place to keep what was worked out about it."""


def to_departure(flight):
    flight["late"] = max(0, flight["dep_delay_minutes"])
    return flight["origin"], flight["late"]
