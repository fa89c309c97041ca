"""Where the files of references lie, for tests without the rules that say it."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from convs2s.config.file_reference import parse_file_reference


class FilesBelow(dict[str, Path]):
    """Locations with their files: what has a URL lies among the downloads of a folder."""

    def __init__(self, downloads: Path) -> None:
        super().__init__()
        self.downloads = downloads

    def __missing__(self, location: str) -> Path:
        return parse_file_reference(location).path(self.downloads)


def write_tar(path: Path, members: Mapping[str, bytes]) -> None:
    """Write an archive that gzip has compressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
