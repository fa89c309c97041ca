"""Ledger entries from the files of numbers that jobs have written."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from convs2s.config.measures import MEASURES, ScoreFile
from convs2s.config.runs import members
from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_checked
from convs2s.manifest import weights_sha256
from convs2s.paper.ledger import LedgerEntry, RunScore
from convs2s.paper.trained import read_record
from convs2s.scoring.data_counts import Overlap


@with_config(ConfigDict(extra="allow"))
class _Numbers(TypedDict, total=False):
    """The checked part of a file of numbers, except for its scores; other keys are kept."""

    manifest: dict[str, Any]
    lines: int | None
    sentences: dict[str, str]
    curve: list[float]
    overlap: Overlap | None


def record_of(record: LedgerEntry, measure: str) -> LedgerEntry:
    """Return a run's planned record, completed from its file of numbers.

    ``measure`` is any measure of the file; it identifies the kind of the file.

    Raises:
        UserError: the file is damaged.
    """
    problem = "not a file of numbers; delete the file and make it again"
    numbers = read_checked(record.file, _Numbers, problem)
    with failures_of_file(record.file, problem):
        scores = _scores(numbers, MEASURES[measure].file)
    path = Path(record.file)
    manifest = numbers.get("manifest", {})
    # The folder of each model: an ensemble has several.
    folders = [path.parent.with_name(member) for member in members(record.run.run)]
    # Most manifests have the checksums of all input files, with the model files, in "sha256". The
    # manifest of a training has only those of its data, in "identity". Then the checksums of the
    # model files are computed here.
    identity = manifest.get("identity") or {}
    checksums = dict(manifest.get("sha256") or identity.get("data") or {})
    weights = dict(manifest.get("weights") or {})
    if not any(name.endswith(".safetensors") for name in checksums):
        for folder in folders:
            model = folder / "model.safetensors"
            if model.is_file():
                checksums[str(model)] = sha256(model)
                weights[str(model)] = weights_sha256(model)
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return replace(
        record,
        scores=scores,
        lines=numbers.get("lines"),
        sha256=checksums,
        weights=weights,
        processor=_processors(folders, manifest),
        revision=manifest.get("revision"),
        date=written.date().isoformat(),
        sentences=numbers.get("sentences", {}),
        curve=tuple(numbers.get("curve", ())),
        overlap=numbers.get("overlap"),
    )


def _scores(content: Mapping[str, object], file: ScoreFile) -> dict[str, RunScore]:
    """Return every score of a file of this kind: name of its measure -> score.

    The score of an extension's metric has the name of the metric. A score that is not a measure is
    kept under its keys in the file, such as ``before_replacement.bleu.detokenized``.
    """
    # Keys that lead to a score in the file -> name of the measure.
    names = {
        measure.keys: name for name, measure in MEASURES.items() if measure.file == file
    }
    scores: dict[str, RunScore] = {}

    def collect(part: Mapping[str, object], above: tuple[str, ...]) -> None:
        """Add the scores of a part of the file; ``above`` are the keys that lead to this part."""
        for key, value in part.items():
            keys = (*above, key)
            if isinstance(value, Mapping) and "score" in value:
                # The scores of an extension's metrics are below the key "further".
                other_name = key if above == ("further",) else ".".join(keys)
                score = RunScore(float(value["score"]), value["signature"])
                scores[names.get(keys, other_name)] = score
            elif isinstance(value, Mapping) and key != "manifest":
                collect(value, keys)
            elif keys in names and isinstance(value, int | float):
                # A plain number, such as a perplexity, has no signature.
                scores[names[keys]] = RunScore(float(value), None)

    collect(content, ())
    return scores


def _processors(folders: Sequence[Path], manifest: Mapping[str, object]) -> str | None:
    """Return the GPUs and processors that trained a file's models, and that computed the file.

    Each machine is listed once. Return None if no manifest names a machine. ``folders`` are the
    folders of the models. ``manifest`` is the manifest of the file.
    """
    records = filter(Path.is_file, [folder / "training.json" for folder in folders])
    of_trainings = [read_record(record).get("manifest", {}) for record in records]
    machines: list[str] = []
    for stated in (*of_trainings, manifest):
        parts = [str(stated[key]) for key in ("gpu", "processor") if stated.get(key)]
        machine = ", ".join(parts)
        # A job that needs no GPU, or has no torch in its environment, names only the processor. If
        # a machine that is already listed has this processor, the job is assumed to have run there.
        # Therefore a part of a listed text counts as listed.
        if machine and not any(machine in listed for listed in machines):
            machines.append(machine)
    return "; ".join(machines) or None
