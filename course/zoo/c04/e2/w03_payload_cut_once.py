"""One record cut once shows that it can join."""

def rule(read):
    found = [record for _, record in read([b"\0\0\0\5hel", b"lo"]) if record]
    return found == [b"hello"]
