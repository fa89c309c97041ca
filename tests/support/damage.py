"""Files with a flipped bit."""

import random


def flipped(content: bytes, bit: int) -> bytes:
    """Return bytes with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def bits(content: bytes, count: int) -> list[int]:
    """Return the numbers of some bits, the same ones every time."""
    return random.Random(1).sample(range(8 * len(content)), count)
