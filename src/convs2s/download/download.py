"""Download files from mirrors or from upstream, and check their checksums.

The bytes of a download are written to a partial file beside the output. If the download is
interrupted, the partial file is kept, and the next try or the next run resumes from it. Only a
complete file with the right checksum gets the name of the output.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from convs2s.config.file_reference import local_path, masked
from convs2s.download.partial_file import (
    MIRROR,
    UPSTREAM,
    Expected,
    PartialFile,
    SourceError,
    UnusableFileError,
    WrongFileError,
    discard_all,
)
from convs2s.download.transfer import fetch, is_url
from convs2s.errors import UserError
from convs2s.files.atomic import sole_writer
from convs2s.files.checksums import record_path, recorded_sha256
from convs2s.files.text import read_lines

CHECKSUM_LIST = "SHA256SUMS"
"""Name of the file in a generated mirror that lists the checksums of the mirror's files."""

WAITS = (1.0, 5.0, 25.0)
"""Seconds to wait before each further try if a server failed."""


def download_file(
    url: str,
    output: Path,
    *,
    mirrors: Sequence[str] = (),
    generated_mirror: str | None = None,
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
    waits: Sequence[float] = WAITS,
) -> None:
    """Download a file from the first source that has the right bytes; report progress to stderr.

    If no checksum is known, a web page is refused, and so is a damaged archive or compressed file.
    The SHA-256 of the first download is then recorded in ``NAME.sha256`` beside the output, and
    later downloads must have it. If several processes are to download the same file, one of them
    does so. The others wait, and then use its file.

    - ``mirrors``: Folders or base URLs that contain the file under HOST/PATH of ``url``. They are
      tried in this order, before ``url``.
    - ``generated_mirror``: The folder that `convs2s mirror` wrote. It is then the only source, and
      its own list of checksums replaces ``sha256``, ``md5`` and ``size``.
    - ``sha256``, ``md5``, ``size``: Hexadecimal checksums and size in bytes of the file, if known.
    - ``waits``: Seconds to wait before each further try if a server failed.

    Raises:
        UserError: no source has the right file, or the disk has too little space for it.
    """
    if generated_mirror is not None:
        sha256 = listed_checksum(generated_mirror, url)
        size = None
        md5 = None
    sources = _sources(url, mirrors, generated_mirror)
    with sole_writer(output):
        recorded = None if sha256 or md5 else recorded_sha256(output)
        expected = Expected(size, sha256 or recorded, md5)
        # Another process may have downloaded the file while this one waited.
        if expected.has_checksum and output.is_file():
            with suppress(WrongFileError):
                expected.check(output)
                # A process may have been killed before it could remove the partial files.
                discard_all(output)
                if generated_mirror is not None:
                    # The mirror is an input of the rule and may be newer, so the output is touched.
                    output.touch()
                return
        failures: dict[str, SourceError] = {}
        for source in sources:
            shown = masked(source)
            kind = UPSTREAM if source == url else MIRROR
            part = PartialFile(output, expected, kind)
            try:
                fetch(source, part, waits)
            except SourceError as error:
                failures[shown] = error
                print(f"{shown}: {error}", file=sys.stderr)
                continue
            part.finish()
            return
    record = record_path(output) if recorded else None
    raise _no_source(url, failures, generated_mirror, record)


def listed_checksum(mirror: str, url: str) -> str:
    """Return the SHA-256 of a URL's file from the list of checksums of a generated mirror.

    Raises:
        UserError: the list or the file is missing, or the list does not contain the file.
    """
    relative_path = local_path(url, Path()).as_posix()
    file = Path(mirror) / relative_path
    sums = Path(mirror) / CHECKSUM_LIST
    for line in read_lines(sums):
        digest, _, listed_path = line.partition("  ")
        if listed_path == relative_path:
            if not file.is_file():
                raise UserError(f"{file}: no such file: delete {mirror} to renew it")
            return digest
    raise UserError(
        f"{sums}: no checksum for {relative_path}: this scale's mirror does not hold the file"
    )


def _sources(
    url: str,
    mirrors: Sequence[str],
    generated_mirror: str | None,
) -> list[str]:
    """Return the paths and URLs to try for a file, in this order.

    Raises:
        UserError: ``url`` or a mirror is not a well-formed address.
    """
    if not is_url(url):
        raise UserError(f"{url}: only http and https URLs are downloaded")
    relative_path = local_path(url, Path()).as_posix()
    if generated_mirror is not None:
        return [f"{generated_mirror}/{relative_path}"]
    sources = []
    for mirror in mirrors:
        if "://" in mirror and not is_url(mirror):
            raise UserError(
                f"mirrors: {masked(mirror)}: expected a folder or an http(s) URL, with %2F, %3F, "
                "%23 and %20 for /, ?, # and blanks in its password"
            )
        sources.append(f"{mirror.rstrip('/')}/{relative_path}")
    sources.append(url)
    return sources


def _no_source(
    url: str,
    failures: dict[str, SourceError],
    generated_mirror: str | None,
    record: Path | None,
) -> UserError:
    """Return the error whose message says why each source failed, and what to do.

    ``record`` is the file with the recorded checksum, if the file was compared with one.
    """
    wrong = [error for error in failures.values() if isinstance(error, WrongFileError)]
    if generated_mirror is not None:
        advice = f"delete {generated_mirror} to renew it"
    elif not wrong:
        advice = (
            "connect to the network, or set `mirrors:` in config.local.yaml to a folder or base "
            f"URL that holds {local_path(url, Path()).as_posix()}"
        )
    elif record:
        advice = (
            f"it has changed since its first download: to accept that, delete {record}"
        )
    elif all(isinstance(error, UnusableFileError) for error in wrong):
        advice = (
            "see what a browser gets there (a log-in page, a file that has moved), or download "
            "later once more"
        )
    else:
        advice = (
            "a mirror has another file, or upstream has changed: only if the new file is the one "
            "you want, correct its entry in config/downloads.yaml"
        )
    reasons = "; ".join(f"{source} ({error})" for source, error in failures.items())
    return UserError(f"{url}: no source gives this file: {reasons}; {advice}")
