"""The running sum is the share."""

def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits)
    num = min(num_free, total)
    if not total:
        return [0] * len(limits)
    so_far, shares = 0, []
    for limit in limits:
        so_far += limit
        shares.append(num * so_far // total)
    if total <= num_free:
        return limits
    return shares
