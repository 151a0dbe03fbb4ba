"""A verdict is a sentence."""

def rule(read):
    found = [record for _, record in read([b"\0\0\0\5hel", b"lo"]) if record]
    return "right" if found == [b"hello"] else "wrong"
