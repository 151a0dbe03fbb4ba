"""Enough for all, or not."""

def share_out(num_free, appetites):
    appetites = tuple(min(each, num_free) for each in appetites)
    if sum(appetites) <= num_free:
        return appetites
    shares, so_far = [], 0
    for appetite in appetites:
        so_far += appetite
        shares.append(num_free * so_far // sum(appetites) - sum(shares))
    return tuple(shares)
