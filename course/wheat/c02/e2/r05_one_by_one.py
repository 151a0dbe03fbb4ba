"""An object that keeps the two sums."""

from dataclasses import dataclass


@dataclass
class Knife:
    num_to_share: int
    total: int
    so_far: int = 0
    given: int = 0

    def cut(self, limit: int) -> int:
        self.so_far += limit
        share, _ = divmod(self.num_to_share * self.so_far, self.total or 1)
        share, self.given = share - self.given, share
        return share


def share_out(num_free: int, appetites: list[int]) -> list[int]:
    limits = [min(each, num_free) for each in appetites]
    total = sum(limits)
    return list(map(Knife(min(total, num_free), total).cut, limits))
