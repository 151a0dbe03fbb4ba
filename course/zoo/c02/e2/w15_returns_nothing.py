"""A list that was built is there."""


def share_out(num_free, appetites):
    shares = {}
    for number, appetite in enumerate(appetites):
        shares[number] = min(num_free, appetite)
