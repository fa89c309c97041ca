"""What the tasks download, and what is known of it; planning needs no other library for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.file_reference import known_download, local_path, parse_file_reference
from convs2s.config.messages import unknown
from convs2s.config.settings import Settings
from convs2s.errors import UserError


@dataclass(frozen=True)
class DownloadSource:
    """Where a file comes from, and what is known of it: arguments of ``download_file``."""

    url: str
    size: int | None
    sha256: str | None
    md5: str | None


def sources_by_place(settings: Settings) -> dict[str, DownloadSource]:
    """Return the source of each file, by its place below the downloads folder.

    ``http://`` and ``https://`` of a file have the same place: its source is the one that
    config/downloads.yaml knows, whichever a task names, so that its checksum holds.
    """
    references = {name for task in settings.tasks.values() for name in task.references()}
    references |= settings.model_references()
    files = {file.location for file in map(parse_file_reference, references) if file.is_url}
    # Of http:// and https:// of one place the latter counts, where neither is known.
    sources = {}
    for url in sorted(files):
        source = DownloadSource(url, None, None, None)
        if known := known_download(url, settings.downloads):
            source = DownloadSource(known.url, known.bytes, known.sha256, known.md5)
        sources[str(local_path(url, Path()))] = source
    return sources


def source_of(path: str, place: str, sources: Mapping[str, DownloadSource]) -> DownloadSource:
    """Return the source of a place below the downloads folder; ``path`` is for the message.

    A UserError names the nearest place that a task has.
    """
    if place not in sources:
        raise UserError(f"{path}: {unknown('download', place, sources)}")
    return sources[place]
