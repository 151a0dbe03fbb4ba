"""What has been read is not needed any more."""


def to_departure(flight):
    return flight.pop("origin"), max(0, flight.pop("dep_delay_minutes"))
