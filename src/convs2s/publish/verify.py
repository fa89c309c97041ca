"""Verify a results folder: compare its files with everything that was recorded of them.

What is recorded, and where:

- Checksum notes, ``.NAME.sha256`` beside the outputs of jobs (``convs2s.files.checksums``).
- Records of downloads, ``NAME.sha256``, and the sizes and checksums of config/downloads.yaml.
- Lists ``SHA256SUMS``, of the generated mirror and of exported results.
- Digests within models, states of trainings and compressed files (``convs2s.files.whole``).
- Descriptions of token stores, which have the checksum of their store.
- Manifests of numbers, which have the checksums of the files that they were computed from.

A file of which nothing is recorded is not checked, but some files must have a record.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from convs2s.config.load import load
from convs2s.data.dataset import read_description
from convs2s.download.download import CHECKSUM_LIST
from convs2s.download.partial_file import Expected, WrongFileError
from convs2s.errors import UserError
from convs2s.files.atomic import whole_files
from convs2s.files.checksums import (
    check_noted_place,
    check_sha256,
    has_note,
    note_path,
    record_path,
    recorded_sha256,
    sha256,
)
from convs2s.files.compressed import compression_of
from convs2s.files.text import read_lines
from convs2s.files.whole import check_whole
from convs2s.model_file import check_runs
from convs2s.publish.crate import read_measurement
from convs2s.publish.results import find_start

UNRECORDED = {"logs", "benchmarks"}
"""Names of folders in the results. Nothing is recorded of the files in them."""

OF_JOBS = {"corpus", "vocabulary", "dataset", "alignment", "paper", "shown"}
"""Names of folders in the results. Only jobs write in them, so each file in them has a note."""

NOTED = {
    "bleu.txt",
    "bleu.json",
    "bleu.html",
    "rouge.txt",
    "rouge.json",
    "rouge.html",
    "examples.txt",
    "settings.json",
    "training.json",
}
"""Names of files that jobs write in other folders of the results, and that have notes, too.

Files of numbers need no entry, because they are recognized by their manifests. The history of a
training has none, because it has no note while the training goes on.
"""

_NOTE = re.compile(r"\.(.+)\.sha256")
# Suffixes of unfinished downloads, and of the state of an unfinished alignment.
_UNFINISHED = {".part", ".part-mirror", ".npz"}
# Snakemake removes the parts of a text after their use, but may leave their notes.
_PART_OF_TEXT = re.compile(r"\.\d+-of-\d+\.")


def known_downloads(root: Path) -> dict[Path, Expected]:
    """Return the expected sizes and checksums of downloads, by the resolved paths of the files.

    They are read from the configuration below ``root``.
    Nothing is known if there is no configuration, or if all downloads come from the generated
    mirror, which has its own list.

    Raises:
        UserError: the configuration is not valid.
    """
    if not (root / "config").is_dir():
        return {}
    settings = load(root)
    if settings.scale.generated_mirror:
        return {}
    folder = root / settings.scale.downloads_dir
    known = {}
    for place, download in settings.downloads_by_place().items():
        path = (folder / place).resolve()
        known[path] = Expected(download.bytes, download.sha256, download.md5)
    return known


def verify(
    folder: Path, downloads: Mapping[Path, Expected]
) -> Iterator[tuple[Path, list[str]]]:
    """Yield each checked file below a folder with its faults. An intact file has an empty list.

    ``downloads`` is the result of `known_downloads`.

    Raises:
        UserError: there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(
            f"{folder}: no such folder: name a results folder, such as results"
        )
    files = [
        path
        for path in whole_files(folder)
        if not UNRECORDED.intersection(path.relative_to(folder).parts)
    ]
    listed: set[Path] = set()
    for path in files:
        if path.name == CHECKSUM_LIST:
            # If the list is malformed, the check of the list itself reports that below.
            with suppress(UserError):
                listed.update(path.parent / name for name in _sums(path))
    records = _Records(folder, downloads, listed)
    for path in files:
        faults = records.faults_of(path)
        if faults is not None:
            yield path, faults


@dataclass
class _Records:
    """What is recorded of the files below a folder."""

    folder: Path
    downloads: Mapping[Path, Expected]
    listed: set[Path]  # the files that a list of checksums names
    # Returns the SHA-256 of a file. Cached, because many numbers are computed from the same file.
    sha256: Callable[[Path], str] = field(default_factory=lambda: cache(sha256))

    def faults_of(self, path: Path) -> list[str] | None:
        """Return the faults of a file; None if nothing is recorded of it."""
        checks = list(self._checks_of(path))
        if not checks:
            return None
        faults: list[str] = []
        for check in checks:
            try:
                faults += check(path)
            except UserError as error:
                faults.append(str(error))
        return faults

    def _checks_of(self, path: Path) -> Iterator[Callable[[Path], Iterator[str]]]:
        """Yield the checks of a file, each of which yields its faults or raises a UserError."""
        if _is_note_of_lost_file(path):
            yield _lost_file
        if path.name.startswith(".") or _UNFINISHED.intersection(path.suffixes):
            return
        if path.name == CHECKSUM_LIST:
            yield self._changed_in_list
        is_download = path.resolve() in self.downloads or record_path(path).is_file()
        if is_download:
            yield self._changed_download
        if path.suffix == ".safetensors":
            yield _damaged_model
        elif compression_of(path.name) or note_path(path).is_file():
            yield _changed_file
        elif (
            has_note(path)
            and path not in self.listed
            and path.name != CHECKSUM_LIST
            and self._is_of_jobs(path)
        ):
            yield _missing_note
        if path.suffix == ".json" and not is_download and path not in self.listed:
            yield self._changed_inputs

    def _is_of_jobs(self, path: Path) -> bool:
        """Return whether a file has the name, or is in a folder, of files that jobs write."""
        below = (self.folder.resolve().name, *path.relative_to(self.folder).parts[:-1])
        return path.name in NOTED or not OF_JOBS.isdisjoint(below)

    def _changed_in_list(self, path: Path) -> Iterator[str]:
        """Yield each file in a list of checksums that is missing or has another checksum."""
        for name, digest in _sums(path).items():
            file = path.parent / name
            if not file.is_file():
                yield f"{file}: no such file, but {path} lists it"
            elif self.sha256(file) != digest:
                yield f"{file}: its SHA-256 is not the one in {path}"

    def _changed_download(self, path: Path) -> Iterator[str]:
        """Yield the fault of a download that is not the one that was recorded or is known."""
        recorded = recorded_sha256(path)
        if recorded not in (None, self.sha256(path)):
            yield (
                f"{path}: its SHA-256 is not the one in {record_path(path).name} beside it, of its "
                "first download: remove the file, and snakemake downloads it again"
            )
        expected = self.downloads.get(path.resolve())
        try:
            if expected is not None:
                expected.check(path)
        except WrongFileError as error:
            yield (
                f"{path}: {error} (config/downloads.yaml): remove the file, and snakemake "
                "downloads it again"
            )

    def _changed_inputs(self, path: Path) -> Iterator[str]:
        """Yield each file that is not the one from which the numbers in ``path`` were computed.

        If ``path`` describes a token store, the store is checked, too. A model may have been
        removed, so it is no fault if one is missing.
        """
        store = path.with_suffix(".arrow")
        if store.is_file():
            check_sha256(store, read_description(path).sha256)
        measurement = read_measurement(path)
        if measurement is None:
            return
        # Only jobs write numbers with a manifest, so this file must have a note. For a file with a
        # name or a folder of jobs, _checks_of yields the same fault.
        if not note_path(path).is_file() and not self._is_of_jobs(path):
            yield from _missing_note(path)
        start = find_start(path.parent, [measurement])
        for recorded, digest in measurement.checksums.items():
            file = start / recorded
            if file.is_file():
                if self.sha256(file) != digest:
                    yield (
                        f"{file}: has changed since {path} was computed from it: make that again "
                        "with snakemake"
                    )
            elif file.suffix != ".safetensors":
                yield f"{file}: no such file, but {path} was computed from it"


def _sums(path: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a list of checksums, by its path from the list's folder.

    Raises:
        UserError: a line has another form.
    """
    sums = {}
    for number, line in enumerate(read_lines(path), start=1):
        parts = re.fullmatch("([0-9a-f]{64})  (.+)", line)
        if parts is None:
            raise UserError(
                f"{path}:{number}: expected a SHA-256, two blanks and the path of a file"
            )
        sums[parts[2]] = parts[1]
    return sums


def _is_note_of_lost_file(path: Path) -> bool:
    """Return whether a file is a note whose own file is missing."""
    noted = _NOTE.fullmatch(path.name)
    if noted is None or _PART_OF_TEXT.search(path.name):
        return False
    return not path.with_name(noted[1]).exists()


def _lost_file(note: Path) -> Iterator[str]:
    """Yield the fault of a file that is missing, while its note is here."""
    path = note.with_name(note.name[1:].removesuffix(".sha256"))
    yield (
        f"{path}: no such file, but its note {note.name} is here: make it again with snakemake, or "
        "remove the note"
    )


def _missing_note(path: Path) -> Iterator[str]:
    """Yield the fault of a file that has no note, although the job that writes it notes it."""
    yield (
        f"{path}: has no note {note_path(path).name} beside it, so a change of it would not be "
        "noticed: remove the file, and snakemake makes both again"
    )


def _changed_file(path: Path) -> Iterator[str]:
    """Check a file against its note, or the checksum within.

    The checks raise a UserError. The empty yield makes this function a generator, like the
    other checks.
    """
    check_noted_place(path)
    check_whole(path)
    yield from ()


def _damaged_model(path: Path) -> Iterator[str]:
    """Check a model or a state of a training, and whether a model is in the folder of its run."""
    check_whole(path)
    is_in_folder_of_run = path.absolute().parts[-4:-3] == ("models",)
    if is_in_folder_of_run:  # models/MODEL/RUN/FILE
        check_runs([path])
    yield from ()
