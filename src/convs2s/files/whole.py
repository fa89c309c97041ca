"""Check that a file still has the bytes with which it was written.

Every file that leaves this machine is checked first. Its copy gets a new checksum. Without the
check, this checksum would confirm a number that has changed on the disk.
"""

from pathlib import Path

from convs2s.files.checksums import check_noted_content
from convs2s.files.compressed import BUFFER_BYTES, compression_of, decompressed_file
from convs2s.files.tensors import load_arrays


def check_whole(path: Path) -> None:
    """Check a file against its note, or against the checksum that it contains.

    Nothing is checked if the file has neither, or does not exist.

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
            # Reading to the end makes the decompressor check the data.
            while stream.read(BUFFER_BYTES):
                pass
