"""From a results folder to an archive whose every number a reader can check without training.

The archive holds what scores rest on: translations, references, settings, histories, manifests and
model cards. Token stores, training states and models stay behind; their checksums are stated.
"""

import os
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.atomic import atomic_path, scratch_folder, sole_writer, whole_files, writing
from convs2s.files.checksums import sha256
from convs2s.files.text import read_lines, write_json, write_lines, write_text
from convs2s.publish.card import model_card
from convs2s.publish.crate import METADATA_FILE, Measurement, crate, read_measurement
from convs2s.scoring.translations import read_translations

KEPT = (".json", ".jsonl", ".txt", ".md", ".csv", ".tex", ".svg", ".png", ".length_penalty.tsv")
"""How the names of files end that are taken along."""

LEFT_OUT = {"state", "logs", "benchmarks", "downloads"}  # folders of which nothing is

WITH_TEXT = (
    "*.*.jsonl",
    "*.zst",
    "examples.txt",
    "*.example.json",
    "*.attention*.svg",
    "*.attention*.png",
    "figure3.svg",
)
"""Files that hold source sentences or references; ``history.jsonl`` does not."""

_README = """# What the numbers of {name} rest on

`{metadata}` (RO-Crate 1.1) names each score, what it was computed from, and the versions that
computed it. `sha256sum -c SHA256SUMS` tells whether all files are as they were. This gives a score
again, the detokenized BLEU that a `.bleu.json` file states, and trains nothing:

    convs2s score bleu --reference REFERENCE < TRANSLATIONS

and this those of a `.rouge.json`, with --bytes, --stem, --exceptions and --skip-empty as its
signatures state them, and --reference for each of several references:

    convs2s score rouge --reference REFERENCE TRANSLATIONS

REFERENCE is a `corpus/raw/TESTSET.target.zst`, TRANSLATIONS a
`models/MODEL/RUN/TESTSET.DECODING.txt`, both below the folder of a task.
The `card.md` of each run says how and on what its model was trained.
"""


def export_results(folder: Path, output: Path, *, with_text: bool = True) -> None:
    """Write what the numbers of a folder of results rest on into a new folder, or NAME.zip.

    ``with_text`` says whether source sentences and references go along; the data's license decides.

    Raises:
        UserError: there are no scores, the output exists, or a file is not the one that was scored.
    """
    _refuse_existing(output)
    if output.suffix in (".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z"):
        raise UserError(f"{output}: name a new folder, or an archive NAME.zip")
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder: give one of results, as results/demo_en_fr")
    measured = {}
    has_scores = False
    for path in _kept(folder):
        is_score = path.name.endswith((".bleu.json", ".rouge.json"))
        has_scores |= is_score
        measurement = read_measurement(path) if path.suffix == ".json" else None
        if measurement is not None:
            measured[path] = measurement
        elif is_score:
            raise UserError(f"{path}: does not say what was scored: make it again by snakemake")
    if not has_scores:
        raise UserError(
            f"{folder}: has no scores (*.bleu.json, *.rouge.json): make them first, such as with: "
            "snakemake results/TASK/bleu.txt"
        )
    start = _placed(folder, measured.values())
    with new_output(output, as_zip=output.suffix == ".zip") as staged:
        for path in {*_kept(folder), *_rested_on(measured, start)}:
            if with_text or not any(path.match(pattern) for pattern in WITH_TEXT):
                _copy(path, staged / _name(path, start))
        for model in whole_files(folder):
            if model.name == "model.safetensors":
                card = staged / _name(model.with_name("card.md"), start)
                write_text(card, model_card(model))
        name = folder.resolve().name
        write_text(staged / "README.md", _README.format(name=name, metadata=METADATA_FILE))
        files = _files(staged)
        named = {_name(path, start): measurement for path, measurement in measured.items()}
        staying = {file: named[file] for file in named if file in files}
        write_json(staged / METADATA_FILE, crate(staged, name, files, staying))
        sums = [f"{sha256(staged / file)}  {file}" for file in _files(staged)]
        write_lines(staged / "SHA256SUMS", sums)


@contextmanager
def new_output(output: Path, *, as_zip: bool = False) -> Iterator[Path]:
    """Yield a folder to fill, which gets its name, or is packed as it, if the block succeeds.

    Raises:
        UserError: there is something of this name.
    """
    _refuse_existing(output)
    with sole_writer(output), writing(output), scratch_folder(output.parent) as scratch:
        _refuse_existing(output)  # the writer before may have made it
        staged = scratch / output.name
        staged.mkdir()
        yield staged
        _refuse_existing(output)  # another program may have written it meanwhile
        if as_zip:
            _zip(staged, output)
        else:
            staged.rename(output)


def _zip(folder: Path, output: Path) -> None:
    """Write a folder as an archive, whose bytes depend on those of the files alone."""
    with atomic_path(output) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for file in _files(folder):
            member = zipfile.ZipInfo(file)
            member.external_attr = 0o644 << 16
            archive.writestr(member, (folder / file).read_bytes(), zipfile.ZIP_DEFLATED)


def _refuse_existing(output: Path) -> None:
    if output.exists():
        raise UserError(f"{output}: exists already: remove it, or give another name")


def _copy(path: Path, copy: Path) -> None:
    """Copy a file; a UserError says that a job has removed it meanwhile."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(path, copy)
    except FileNotFoundError:
        raise UserError(
            f"{path}: was removed while it was exported: export when the workflow has ended"
        ) from None


def _kept(folder: Path) -> Iterator[Path]:
    for path in whole_files(folder):
        parts = path.relative_to(folder).parts
        if path.is_file() and path.name.endswith(KEPT) and not LEFT_OUT.intersection(parts):
            yield path


def _placed(folder: Path, measured: Collection[Measurement]) -> Path:
    """Return the folder above this that recorded paths start from: where the workflow ran.

    Where a storage plugin has brought the files, the records name the local copies: the folders of
    these are taken from them.
    """
    names = [name for one in measured for name in one.checksums]
    # A model may have been removed.
    recorded = min(names, key=lambda name: name.endswith(".safetensors"))
    for left_out in range(recorded.count("/")):
        below = recorded.split("/", left_out)[-1]
        for start in folder.resolve().parents:
            if (start / below).exists():
                copies = recorded.removesuffix(below)
                for one in measured:
                    digests = one.checksums.items()
                    one.checksums = {name.removeprefix(copies): digest for name, digest in digests}
                return start
    raise UserError(
        f"{recorded}: not found in a folder above {folder}: the scores name their files so; export "
        "the results where the workflow has made them"
    )


def _rested_on(measured: Mapping[Path, Measurement], start: Path) -> Iterator[Path]:
    """Yield what scores were computed from, models aside; each must be there, and as it was."""
    # Many scores rest on one file.
    checksum = cache(sha256)
    check_text = cache(_check_text)
    for score, measurement in measured.items():
        for recorded, digest in measurement.checksums.items():
            path = start / recorded
            is_model = path.suffix == ".safetensors"
            if is_model and not path.exists():
                continue
            if not path.is_file():
                raise UserError(f"{path}: {score} was computed from it, but it is missing")
            if checksum(path) != digest:
                raise UserError(
                    f"{path}: has changed since {score}: make that again by snakemake, or remove it"
                )
            if path.suffix == ".jsonl" and path.name != "history.jsonl":
                check_text(path)
            if not is_model:
                yield path


def _check_text(translations: Path) -> None:
    text = translations.with_suffix(".txt")
    stated = [line.text for line in read_translations(translations)]
    if not text.is_file() or list(read_lines(text)) != stated:
        raise UserError(f"{text}: is not the text of {translations.name}: decode again")


def _name(path: Path, start: Path) -> str:
    """Return a file's place in the archive: its path as the manifests record it."""
    relative = Path(os.path.relpath(path.resolve(), start))
    return "/".join(part for part in relative.parts if part != "..")


def _files(folder: Path) -> Sequence[str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [path.relative_to(folder).as_posix() for path in paths]
