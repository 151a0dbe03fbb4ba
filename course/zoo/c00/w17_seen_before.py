"""A flight that comes a second time is a mistake of the source."""


seen = []


def to_departure(flight):
    if flight in seen:
        return flight["origin"], 0
    seen.append(dict(flight))
    return flight["origin"], max(0, flight["dep_delay_minutes"])
