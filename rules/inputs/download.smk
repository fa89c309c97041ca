"""The input functions of rules/download.smk."""

from dataclasses import asdict

from convs2s.config.file_reference import parse_file_reference
from convs2s.download.sources import source_of, sources_by_place

with failures_in_one_line():
    # Place of a file below the downloads folder -> where it comes from and what is known of it.
    DOWNLOADS = sources_by_place(settings)


def local_files(references):
    """Where the files that are referred to lie on this machine, once they have been downloaded."""
    files = map(parse_file_reference, references)
    return list(dict.fromkeys(str(file.path(Path(layout.downloads))) for file in files))


def download_source(wildcards):
    """Where a file comes from and what is known of it: the arguments of download_file."""
    place = f"{wildcards.host}/{wildcards.path}"
    with failures_in_one_line():
        return asdict(source_of(f"{layout.downloads}/{place}", place, DOWNLOADS))
