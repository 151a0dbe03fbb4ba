"""Fair is: the same for all."""

def share_out(num_free, appetites):
    if not appetites:
        return []
    each = num_free // len(appetites)
    return [min(each, appetite) for appetite in appetites]
