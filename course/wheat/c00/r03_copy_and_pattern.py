"""A copy is changed, the flight is not."""


def to_departure(flight):
    mine = dict(flight)
    mine["dep_delay_minutes"] *= mine["dep_delay_minutes"] > 0
    match mine:
        case {"origin": origin, "dep_delay_minutes": minutes}:
            return origin, int(minutes)
