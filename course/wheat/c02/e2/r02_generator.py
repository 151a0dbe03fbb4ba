"""A generator, and exact fractions."""

from fractions import Fraction


def share_out(num_free, appetites):
    wanted = [min(num_free, each) for each in appetites]
    all_wanted = sum(wanted)
    part = Fraction(min(num_free, all_wanted), all_wanted) if all_wanted else 0

    def shares():
        before = 0
        for number in range(len(wanted)):
            after = int(part * sum(wanted[: number + 1]))
            yield after - before
            before = after

    return shares()
