"""The list of appetites is a good place for the limits."""

def share_out(num_free, appetites):
    for number, appetite in enumerate(appetites):
        appetites[number] = min(num_free, appetite)
    total = sum(appetites)
    num = min(num_free, total)
    if not total:
        return [0] * len(appetites)
    so_far, given, shares = 0, 0, []
    for appetite in appetites:
        so_far += appetite
        shares.append(num * so_far // total - given)
        given += shares[-1]
    return shares
