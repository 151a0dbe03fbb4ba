"""I print what I find; whoever reads it will see."""

def rule(read):
    found = [record for _, record in read([b"\0\0\0\5hel", b"lo"]) if record]
    print(found == [b"hello"])
