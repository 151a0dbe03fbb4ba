"""A share is a fraction."""

def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits)
    num = min(num_free, total)
    if not total:
        return [0] * len(limits)
    return [num * limit / total for limit in limits]
