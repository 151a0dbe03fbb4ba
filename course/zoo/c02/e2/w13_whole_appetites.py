"""A pool takes what it wants."""

def share_out(num_free, appetites):
    return list(appetites)
