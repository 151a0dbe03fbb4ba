"""numpy's cumsum, with whole numbers of any size."""

import numpy as np


def share_out(num_free, appetites):
    limits = np.minimum(np.array(appetites, dtype=object), num_free)
    total = int(limits.sum()) if len(limits) else 0
    if not total:
        return [0 for _ in appetites]
    ends = np.cumsum(limits) * min(num_free, total) // total
    return np.diff(ends, prepend=0)
