"""What is free is given out, wanted or not."""

def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits) or 1
    so_far, given, shares = 0, 0, []
    for limit in limits:
        so_far += limit
        shares.append(num_free * so_far // total - given)
        given += shares[-1]
    return shares
