"""What rounding leaves over goes to the first."""

def share_out(num_free, appetites):
    limits = [min(num_free, appetite) for appetite in appetites]
    total = sum(limits)
    num = min(num_free, total)
    if not total:
        return [0] * len(limits)
    shares = [num * limit // total for limit in limits]
    for number in range(num - sum(shares)):
        shares[number] += 1
    return shares
