"""Downloads: from a mirror or from upstream to a complete file whose checksum holds.

Bytes gather in a part and stay there when a download is cut, so that the next try, and the next
run, resumes where this one stopped. Only the complete and checked file gets its name.
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
    WrongFileError,
)
from convs2s.download.transfer import fetch, is_url
from convs2s.errors import UserError
from convs2s.files.atomic import sole_writer
from convs2s.files.checksums import record_path, recorded_sha256
from convs2s.files.text import read_lines, write_lines

CHECKSUM_LIST = "SHA256SUMS"  # the list of its checksums that a generated mirror holds
WAITS = (1.0, 5.0, 25.0)  # seconds before each further try at a server that failed


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
    """Bring a file from the first source that gives the right bytes; report progress to stderr.

    Where no checksum is known, the first download's SHA-256 is recorded in NAME.sha256 and holds.
    Of several processes that want the same file one brings it; the others wait, and take that.
    ``mirrors`` are folders or base URLs that hold HOST/PATH of the http(s) ``url``, asked in order
    before it. ``generated_mirror`` is what `convs2s mirror` wrote: asked alone, and by its own
    checksums. Checksums are hexadecimal digits, the ``size`` is in bytes, ``waits`` are seconds
    before each further try at a server that failed. A UserError says that no source gives the right
    file, or that the disk has too little space for it.
    """
    if generated_mirror is not None:
        sha256 = listed_checksum(generated_mirror, url)
        size = None
        md5 = None
    sources = _sources(url, mirrors, generated_mirror)
    with sole_writer(output):
        recorded = None if sha256 or md5 else recorded_sha256(output)
        expected = Expected(size, sha256 or recorded, md5)
        if expected.has_checksum and output.is_file():  # as another process has brought it
            with suppress(WrongFileError):
                expected.check(output)
                if generated_mirror is not None:
                    output.touch()  # the mirror is an input of the rule, which may be newer
                return
        failures: dict[str, SourceError] = {}
        for source in sources:
            shown = masked(source)
            part = PartialFile(output, UPSTREAM if source == url else MIRROR)
            try:
                fetch(source, part, expected, waits)
            except SourceError as error:
                failures[shown] = error
                print(f"{shown}: {error}", file=sys.stderr)
                continue
            if not expected.has_checksum:
                write_lines(record_path(output), [f"{part.sha256()}  {output.name}"])
            part.finish()
            return
    record = record_path(output) if recorded else None
    raise _no_source(url, failures, generated_mirror, record)


def listed_checksum(mirror: str, url: str) -> str:
    """Return the SHA-256 that a generated mirror's list states of its file for a URL."""
    place = local_path(url, Path()).as_posix()
    file = Path(mirror) / place
    sums = Path(mirror) / CHECKSUM_LIST
    for line in read_lines(sums):
        digest, _, listed = line.partition("  ")
        if listed == place:
            if not file.is_file():
                raise UserError(f"{file}: no such file: delete {mirror} to renew it")
            return digest
    raise UserError(f"{sums}: no checksum for {place}: this scale's mirror does not hold the file")


def _sources(url: str, mirrors: Sequence[str], generated_mirror: str | None) -> list[str]:
    if not is_url(url):
        raise UserError(f"{url}: only http and https URLs are downloaded")
    place = local_path(url, Path()).as_posix()
    if generated_mirror is not None:
        return [f"{generated_mirror}/{place}"]
    sources = []
    for mirror in mirrors:
        if "://" in mirror and not is_url(mirror):
            raise UserError(
                f"mirrors: {masked(mirror)}: expected a folder or an http(s) URL, with %2F, %3F, "
                "%23 and %20 for /, ?, # and blanks in its password"
            )
        sources.append(f"{mirror.rstrip('/')}/{place}")
    sources.append(url)
    return sources


def _no_source(
    url: str, failures: dict[str, SourceError], generated_mirror: str | None, record: Path | None
) -> UserError:
    """Return the error that says what each source did, and what can be done."""
    if generated_mirror is not None:
        advice = f"delete {generated_mirror} to renew it"
    elif not any(isinstance(error, WrongFileError) for error in failures.values()):
        advice = (
            "connect to the network, or set `mirrors:` in config.local.yaml to a folder or base "
            f"URL that holds {local_path(url, Path()).as_posix()}"
        )
    elif record:
        advice = f"it has changed since its first download: to accept that, delete {record}"
    else:
        advice = (
            "a mirror is no true copy, or upstream has changed: only if the new file is the one "
            "you want, correct what config/downloads.yaml says of it"
        )
    reasons = "; ".join(f"{source} ({error})" for source, error in failures.items())
    return UserError(f"{url}: no source gives this file: {reasons}; {advice}")
