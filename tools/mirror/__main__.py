"""Writes the mirror's contents to where the package ships them, and prints their checksum."""

import hashlib
import io
import lzma
import tarfile
from collections.abc import Mapping

from convs2s.mirror.write import CONTENTS
from mirror.contents import contents
from mirror.formats import Content


def shipped_tar(files: Mapping[str, Content]) -> bytes:
    """Return files as one tar archive, in which those of an archive lie in a folder of its name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:

        def add(name: str, content: Content) -> None:
            if isinstance(content, Mapping):
                for member, inner in content.items():
                    add(f"{name}/{member}", inner)
                return
            if isinstance(content, list):
                content = "".join(f"{line}\n" for line in content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))

        for place, content in sorted(files.items()):
            add(place, content)
    return stream.getvalue()


if __name__ == "__main__":
    tar = shipped_tar(contents())
    CONTENTS.write_bytes(lzma.compress(tar, preset=9 | lzma.PRESET_EXTREME))
    print(hashlib.sha256(tar).hexdigest())
