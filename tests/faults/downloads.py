"""Two files of 200,000 bytes to download."""

BODY = b"A man sat\n" * 20_000
OTHER = b"A dog sat\n" * 20_000
