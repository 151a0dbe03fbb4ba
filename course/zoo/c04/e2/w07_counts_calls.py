"""Each buffer takes exactly one call, and brings one answer."""

def rule(read):
    pieces = [b"\0\0\0\5hel", b"lo\0\0\0\2hi"]
    return len(read(pieces)) == len(pieces)
