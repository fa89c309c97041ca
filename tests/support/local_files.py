"""Where the files of references lie, for tests without the rules that say it."""

from pathlib import Path

from convs2s.config.file_reference import parse_file_reference


class FilesBelow(dict[str, Path]):
    """Locations with their files: what has a URL lies among the downloads of a folder."""

    def __init__(self, downloads: Path) -> None:
        super().__init__()
        self.downloads = downloads

    def __missing__(self, location: str) -> Path:
        return parse_file_reference(location).path(self.downloads)
