"""Running sums by itertools."""

from itertools import accumulate, pairwise


def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = max(1, sum(limits))
    ends = [min(num_free, total) * each // total if any(limits) else 0 for each in accumulate(limits, initial=0)]
    return [right - left for left, right in pairwise(ends)]
