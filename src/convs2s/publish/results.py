"""Export a results folder, so that a reader can check every number without training.

The exported folder or archive has the files from which scores were computed: translations,
references, settings, histories, manifests and model cards. Token stores, training states and models
are left out, but their checksums are stated.
"""

import os
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.atomic import (
    atomic_folder,
    atomic_path,
    refuse_existing,
    whole_files,
)
from convs2s.files.checksums import check_noted_place, sha256
from convs2s.files.text import read_lines, write_json, write_lines, write_text
from convs2s.files.whole import check_whole
from convs2s.publish.card import EVALUATIONS, model_card
from convs2s.publish.crate import METADATA_FILE, Measurement, crate, read_measurement
from convs2s.scoring.translations import read_translations

KEPT = (
    ".json",
    ".jsonl",
    ".txt",
    ".md",
    ".csv",
    ".tex",
    ".svg",
    ".png",
    ".length_penalty.tsv",
)
"""Endings of the names of files that are exported."""

LEFT_OUT = {"state", "logs", "benchmarks", "downloads"}
"""Names of folders whose files are not exported."""

WITH_TEXT = (
    "*.*.jsonl",
    "*.zst",
    "examples.txt",
    "*.example.json",
    "*.attention*.svg",
    "*.attention*.png",
    "figure3.svg",
)
"""Patterns of files with source sentences or references, such as ``test.beam5.jsonl``."""

_README = """# The numbers of {name} and their sources

`{metadata}` (RO-Crate 1.1) lists each score, the files that it was computed from, and the versions
of the software that computed it. `sha256sum -c SHA256SUMS` checks that no file has changed.

No score needs a training to be checked. This computes the detokenized BLEU of a `.bleu.json` file:

    convs2s score bleu --reference REFERENCE < TRANSLATIONS

This computes the scores of a `.rouge.json` file, with --bytes, --stem, --exceptions and
--skip-empty as in its signatures. If there are several references, repeat --reference for each:

    convs2s score rouge --reference REFERENCE TRANSLATIONS

REFERENCE is a file `corpus/raw/TESTSET.target.zst`, and TRANSLATIONS is a file
`models/MODEL/RUN/TESTSET.DECODING.txt`. Both are in the folder of a task.
The file `card.md` of each run describes the training of its model.
"""


def export_results(
    folder: Path,
    output: Path,
    *,
    with_text: bool = True,
) -> None:
    """Export the scores in a results folder, and the files that they were computed from.

    Args:
        folder: the results folder.
        output: a new folder to write, or a new archive NAME.zip.
        with_text: whether to export source sentences and references. The license of the data
            decides whether that is allowed.

    Raises:
        UserError: there are no scores, the output exists, or a file was changed after it was
            written, or was removed since it was scored.
    """
    refuse_existing(output)
    if output.suffix in (".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z"):
        raise UserError(f"{output}: name a new folder, or an archive NAME.zip")
    if not folder.is_dir():
        raise UserError(
            f"{folder}: no such folder: name a results folder, as results/demo_en_fr"
        )
    kept = list(_kept(folder))
    for path in kept:
        check_whole(path)
    scores = [path for path in kept if path.name.endswith(tuple(EVALUATIONS))]
    if not scores:
        raise UserError(
            f"{folder}: has no scores (*.bleu.json, *.rouge.json): make them first, for example "
            "with `snakemake results/TASK/bleu.txt`"
        )
    measured = {}
    for path in kept:
        measurement = read_measurement(path) if path.suffix == ".json" else None
        if measurement is not None:
            measured[path] = measurement
        elif path in scores:
            raise UserError(
                f"{path}: does not say what was scored: make it again with snakemake"
            )
    # This also changes the paths in the measurements, so it must come before they are used.
    start = find_start(folder, measured.values())
    for path in kept:
        check_noted_place(path)
    pack = _zip if output.suffix == ".zip" else None
    with atomic_folder(output, pack) as staged:
        for path in {*kept, *_scored_files(measured, start)}:
            has_text = any(path.match(pattern) for pattern in WITH_TEXT)
            if with_text or not has_text:
                _copy(path, staged / _name(path, start))
        for model in whole_files(folder):
            if model.name == "model.safetensors":
                card = staged / _name(model.with_name("card.md"), start)
                write_text(card, model_card(model))
        name = folder.resolve().name
        readme = _README.format(name=name, metadata=METADATA_FILE)
        write_text(staged / "README.md", readme)
        files = _files(staged)
        # The measurements of exported files, by their paths in the archive.
        exported = {}
        for path, measurement in measured.items():
            file = _name(path, start)
            if file in files:
                exported[file] = measurement
        write_json(staged / METADATA_FILE, crate(staged, name, files, exported))
        sums = [f"{sha256(staged / file)}  {file}" for file in _files(staged)]
        write_lines(staged / "SHA256SUMS", sums)


def _zip(folder: Path, output: Path) -> None:
    """Pack a folder as an archive. Its bytes depend on the files' names and contents only."""
    with atomic_path(output) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for file in _files(folder):
            member = zipfile.ZipInfo(file)  # with a fixed time
            member.external_attr = 0o644 << 16  # the upper 16 bits are Unix permissions
            archive.writestr(member, (folder / file).read_bytes(), zipfile.ZIP_DEFLATED)


def _copy(path: Path, copy: Path) -> None:
    """Copy a file; raise a UserError if a job has removed it since it was found."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(path, copy)
    except FileNotFoundError:
        raise UserError(
            f"{path}: was removed while it was exported: export when the workflow has ended"
        ) from None


def _kept(folder: Path) -> Iterator[Path]:
    """Yield the files of a results folder to export, whether they have text or not."""
    for path in whole_files(folder):
        is_left_out = LEFT_OUT.intersection(path.relative_to(folder).parts)
        if path.is_file() and path.name.endswith(KEPT) and not is_left_out:
            yield path


def find_start(folder: Path, measured: Collection[Measurement]) -> Path:
    """Return the folder in which the workflow ran, from which recorded paths start.

    It is a folder above the results folder. If a storage plugin has brought the files, the records
    have the paths of its local copies. The prefix of these paths is then removed from the paths in
    ``measured``, which this function changes, so that all paths start from the returned folder.

    Raises:
        UserError: no folder above the results folder has the file that is looked for.
    """
    paths = [path for measurement in measured for path in measurement.checksums]
    # Look for one recorded file, if possible not for a model, because models may have been removed.
    recorded = min(paths, key=lambda path: path.endswith(".safetensors"))
    # Remove more and more folders from the beginning of its path, until the file is found. At least
    # one folder stays.
    for removed_parts in range(recorded.count("/")):
        below = recorded.split("/", removed_parts)[-1]
        for start in folder.resolve().parents:
            if (start / below).exists():
                prefix = recorded.removesuffix(below)
                for measurement in measured:
                    digests = measurement.checksums.items()
                    measurement.checksums = {
                        path.removeprefix(prefix): digest for path, digest in digests
                    }
                return start
    raise UserError(
        f"{recorded}: scores were computed from this file, but no folder above {folder} has it; "
        "export the results in the folder where the workflow has made them"
    )


def _scored_files(measured: Mapping[Path, Measurement], start: Path) -> Iterator[Path]:
    """Yield the files that scores were computed from, except models.

    Raises:
        UserError: a file has changed since it was scored, or is missing. Models may be missing.
    """
    # Many scores are computed from the same file, which is read once.
    checksum = cache(sha256)
    check_text = cache(_check_text)
    for score, measurement in measured.items():
        for recorded, digest in measurement.checksums.items():
            path = start / recorded
            is_model = path.suffix == ".safetensors"
            if is_model and not path.exists():
                continue
            if not path.is_file():
                raise UserError(
                    f"{path}: {score} was computed from it, but it is missing"
                )
            if checksum(path) != digest:
                raise UserError(
                    f"{path}: has changed since {score} was computed from it; make that score "
                    "again with snakemake, or remove its file"
                )
            # All other files with this suffix are translations.
            if path.suffix == ".jsonl" and path.name != "history.jsonl":
                check_text(path)
            if not is_model:
                yield path


def _check_text(translations: Path) -> None:
    """Check that the text file beside the translations has the same text as they have."""
    text = translations.with_suffix(".txt")
    expected = [line.text for line in read_translations(translations)]
    if not text.is_file() or list(read_lines(text)) != expected:
        raise UserError(f"{text}: is not the text of {translations.name}: decode again")


def _name(path: Path, start: Path) -> str:
    """Return the path of a file in the archive, which is its path from ``start`` with slashes.

    Leading ``..`` of files outside of that folder are left out.
    """
    relative = Path(os.path.relpath(path.resolve(), start))
    return "/".join(part for part in relative.parts if part != "..")


def _files(folder: Path) -> Sequence[str]:
    """Return the paths of all complete files in a folder, from it, with slashes and sorted."""
    paths = sorted(whole_files(folder))
    return [path.relative_to(folder).as_posix() for path in paths]
