"""What the tasks download, and what is known of it; planning needs no other library for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from convs2s.config.download import Download
from convs2s.config.file_reference import local_path, parse_file_reference
from convs2s.config.scale import Scale
from convs2s.config.settings import Settings
from convs2s.errors import UserError


@dataclass(frozen=True)
class DownloadSource:
    """Where a file comes from: arguments of ``download_file``.

    Attributes:
        url: its upstream address.
        size: in bytes, where it is known.
        sha256: its checksum, where it is known; md5 likewise.
        md5: see sha256.
    """

    url: str
    size: int | None
    sha256: str | None
    md5: str | None


def sources_by_place(settings: Settings) -> dict[str, DownloadSource]:
    """Return the source of each file, by its place below the downloads folder.

    Raises:
        UserError: a task refers to a file in a way that cannot be read.
    """
    references = {one for task in settings.tasks.values() for one in task.references()}
    files = {file.location for file in map(parse_file_reference, references) if file.is_url}
    return {str(local_path(url, Path())): _source(url, settings.downloads) for url in files}


def _source(url: str, known: Mapping[str, Download]) -> DownloadSource:
    if url not in known:
        return DownloadSource(url, None, None, None)
    download = known[url]
    return DownloadSource(url, download.bytes, download.sha256, download.md5)


def at_scale(source: DownloadSource, place: str, scale: Scale) -> DownloadSource:
    """Return a source with the checksum of a scale's own list, if it has one.

    Raises:
        UserError: the list is missing, is not UTF-8, or does not name the file.
    """
    if scale.checksums is None:
        return source
    try:
        text = Path(scale.checksums).read_text("utf-8")
    except FileNotFoundError:
        raise UserError(f"{scale.checksums}: no such file") from None
    except (OSError, ValueError) as error:  # not UTF-8
        raise UserError(f"{scale.checksums}: cannot be read: {error}") from None
    for line in text.splitlines():
        digest, _, listed = line.partition("  ")
        if listed == place:
            return replace(source, size=None, sha256=digest, md5=None)
    raise UserError(
        f"{scale.checksums}: no checksum for {place}: this scale's mirror does not hold the file"
    )
