"""If it can read two records out of one buffer, it can read."""

def rule(read):
    answers = read([b"\0\0\0\5hello\0\0\0\2hi"])
    return [record for _, record in answers] == [b"hello", b"hi"]
