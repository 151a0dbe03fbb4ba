"""There is always somebody who wants something."""

def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits)
    num = min(num_free, total)
    so_far, given, shares = 0, 0, []
    for limit in limits:
        so_far += limit
        shares.append(num * so_far // total - given)
        given += shares[-1]
    return shares
