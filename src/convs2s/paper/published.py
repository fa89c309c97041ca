"""A ledger that somebody published: a file of this machine, or one that is fetched."""

from pathlib import Path

from convs2s.config.file_reference import local_path
from convs2s.config.options import Options
from convs2s.paper.ledger_entry import read_ledger


def published_file(options: Options, downloads: Path) -> Path | None:
    """Return where the published ledger lies, fetched if it is not there; None without one.

    Planning needs it, as it says which runs are not made; a file of this machine is read by what
    Snakemake brings along, a download by the package's own libraries.

    Args:
        options: those of the configuration.
        downloads: the folder of the downloads.

    Raises:
        UserError: no source gives the file, or its address is none of a file.
    """
    if options.published is None:
        return None
    if "://" not in options.published:
        return Path(options.published)
    place = local_path(options.published, downloads)
    if not place.exists():
        from convs2s.download.download import download_file  # its libraries are not planning's

        download_file(options.published, place, mirrors=options.mirrors)
    return place


def published_runs(file: Path | None) -> frozenset[tuple[str, str]]:
    """Return fingerprint and measure of each number of a published ledger's runs.

    Raises:
        UserError: the file is missing, or a line of it is no entry that can be trusted to be whole.
    """
    entries = read_ledger(file) if file else []
    return frozenset((entry.fingerprint, one) for entry in entries for one in entry.scores)
