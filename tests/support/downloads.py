"""Two files to download."""

import random

BODY = random.Random(1).randbytes(200_000)
OTHER = random.Random(2).randbytes(200_000)
