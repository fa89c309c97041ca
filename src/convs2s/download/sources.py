"""What the tasks download, and what is known of it; planning needs no other library for it."""

from collections.abc import Mapping
from pathlib import Path

from convs2s.config.file_reference import (
    Download,
    known_download,
    local_path,
    parse_file_reference,
)
from convs2s.config.messages import unknown
from convs2s.config.settings import Settings
from convs2s.errors import UserError


def sources_by_place(settings: Settings) -> dict[str, Download]:
    """Return what is known of each file, by its place below the downloads folder.

    ``http://`` and ``https://`` of a file have the same place: its source is the one that
    config/downloads.yaml knows, whichever a task names, so that its checksum holds.
    """
    references = {name for task in settings.tasks.values() for name in task.references()}
    references |= settings.model_references()
    files = {file.location for file in map(parse_file_reference, references) if file.is_url}
    # Of http:// and https:// of one place the latter counts, where neither is known. What the
    # workflow makes itself (demo://, titles://) is no download's address, so nothing is validated.
    return {
        str(local_path(url, Path())): known_download(url, settings.downloads)
        or Download.model_construct(url=url)
        for url in sorted(files)
    }


def source_of(path: str, place: str, sources: Mapping[str, Download]) -> Download:
    """Return what is known of a place below the downloads folder; ``path`` is for the message.

    A UserError names the nearest place that a task has.
    """
    if place not in sources:
        raise UserError(f"{path}: {unknown('download', place, sources)}")
    return sources[place]
