"""A pool that wants nothing has no share."""

def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits)
    num = min(num_free, total)
    if not total:
        return [0] * len(limits)
    so_far, given, shares = 0, 0, []
    for limit in [each for each in limits if each]:
        so_far += limit
        shares.append(num * so_far // total - given)
        given += shares[-1]
    return shares
