"""Who comes first is served first."""

def share_out(num_free, appetites):
    shares = []
    for appetite in appetites:
        shares.append(min(appetite, num_free))
        num_free -= shares[-1]
    return shares
