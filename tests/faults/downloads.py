"""Two files to download: archives, as without a checksum nothing else is taken under their name."""

import gzip
import io
import random
import tarfile


def _archive(seed: int) -> bytes:
    """Return a compressed tar archive of noise, filled with zeros to 200,000 bytes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        header = tarfile.TarInfo("train.en")
        header.size = 180_000
        tar.addfile(header, io.BytesIO(random.Random(seed).randbytes(header.size)))
    return gzip.compress(plain.getvalue(), mtime=0).ljust(200_000, b"\0")


BODY = _archive(1)
OTHER = _archive(2)
