"""Check that a file still has the bytes with which it was written, whatever tells that.

Whatever leaves this machine is checked first: a copy gets a new checksum, after which a number that
was changed on this disk looks like any other.
"""

from pathlib import Path

from convs2s.files.checksums import check_noted_content
from convs2s.files.compressed import BUFFER_BYTES, compression_of, decompressed_file
from convs2s.files.tensors import load_arrays


def check_whole(path: Path) -> None:
    """Check a file against its note, or against the checksum that its format has within.

    A file that has neither is not checked, and one that is missing is not either.

    Raises:
        UserError: the file was changed after it was written, or is damaged.
    """
    if not path.is_file():
        return
    check_noted_content(path)
    if path.suffix == ".safetensors":
        load_arrays(path)
    elif compression_of(path.name):
        with decompressed_file(path) as stream:
            while stream.read(BUFFER_BYTES):
                pass
