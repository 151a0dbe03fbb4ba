"""The value of a stream is what has been seen so far."""


worst = {}


def to_departure(flight):
    origin = flight["origin"]
    worst[origin] = max(worst.get(origin, 0), flight["dep_delay_minutes"])
    return origin, worst[origin]
