"""The flight was handed over, so it can be corrected in place."""


def to_departure(flight):
    if flight["dep_delay_minutes"] < 0:
        flight["dep_delay_minutes"] = 0
    return flight["origin"], flight["dep_delay_minutes"]
