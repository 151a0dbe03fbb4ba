"""Early is a kind of late, with a minus sign."""


def to_departure(flight):
    return flight["origin"], flight["dep_delay_minutes"]
