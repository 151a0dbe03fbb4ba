"""A record is a row: the second field is the origin, the last one the delay."""


def to_departure(flight):
    fields = list(flight.values())
    return fields[1], max(0, fields[4])
