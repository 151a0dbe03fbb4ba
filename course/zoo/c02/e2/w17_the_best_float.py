"""A quotient is exact enough, if the product comes first."""

def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits)
    num = min(num_free, total)
    if not total:
        return [0] * len(limits)
    so_far, given, shares = 0, 0, []
    for limit in limits:
        so_far += limit
        shares.append(int(num * so_far / total) - given)
        given += shares[-1]
    return shares
