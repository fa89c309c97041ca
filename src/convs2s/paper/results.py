"""What the runs of cells scored: from their files to a ledger, from ledgers to the cells."""

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from convs2s.config.measures import MEASURES, ScoreFile, measure_called
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json, write_lines
from convs2s.manifest import weights_sha256
from convs2s.paper.cells import Cell, CellAddress, RunFile
from convs2s.paper.ledger import LedgerEntry, RunNames, RunScore, read_ledger
from convs2s.paper.run_inputs import RunInputs, fingerprint_of
from convs2s.paper.trained import read_record


@with_config(ConfigDict(extra="allow"))
class _Numbers(TypedDict, total=False):
    """What a file of numbers says beside its scores."""

    manifest: dict[str, Any]
    lines: int | None
    sentences: dict[str, str]
    curve: list[float]


@dataclass(frozen=True)
class Result:
    """What the runs of a cell scored: run -> its entry, or why it failed where there is none."""

    cell: Cell
    entries: Mapping[str, LedgerEntry]
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def scores(self) -> dict[str, float]:
        """Run -> its score."""
        return {run: entry.scores[self.cell.measure].score for run, entry in self.entries.items()}

    @property
    def signatures(self) -> list[str]:
        """Those of the metric, each once."""
        stated = (entry.scores[self.cell.measure].signature for entry in self.entries.values())
        return list(dict.fromkeys(signature for signature in stated if signature))

    @property
    def mean(self) -> float | None:
        """The mean over the runs; None without one, or of several signatures."""
        compares = self.entries and len(self.signatures) < 2
        return statistics.mean(self.scores.values()) if compares else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the runs; None of one run, or where there is no mean."""
        compares = len(self.entries) > 1 and len(self.signatures) < 2
        return statistics.stdev(self.scores.values()) if compares else None

    @property
    def lines(self) -> int | None:
        """The number of lines of the test set; None where no entry says."""
        stated = (entry.lines for entry in self.entries.values())
        return next((lines for lines in stated if lines is not None), None)

    @property
    def published(self) -> frozenset[str]:
        """The runs that come from a published ledger."""
        return frozenset(run for run, entry in self.entries.items() if entry.origin)

    @property
    def missing(self) -> list[RunFile]:
        """The runs that are not there."""
        return [file for file in self.cell.files if file.run not in self.entries]


def results(
    cells: Iterable[Cell], entries: Iterable[LedgerEntry], failures: Mapping[str, str] | None = None
) -> list[Result]:
    """Return what each cell shows: the runs whose inputs have the fingerprints of its own.

    Of a run that several processors have made, it is the user's own before a published one, then
    that of the processor with most runs of the cell, then of all cells, then the last by name.
    """
    cells = list(cells)
    by_cell = runs_by_cell(cells, entries)
    of_all = Counter(entry.processor for runs in by_cell.values() for entry in runs)
    shown = []
    for cell in cells:
        here = Counter(entry.processor for entry in by_cell[cell.address])
        ranked = sorted(
            by_cell[cell.address],
            key=lambda run: (run.origin is None, *rank_of(run.processor, here, of_all)),
        )
        known = {entry.run.run: entry for entry in ranked}
        scored = {run: known[run] for run in cell.runs if run in known}
        failed = {
            file.run: failures[file.path]
            for file in cell.files
            if failures and file.path in failures and file.run not in scored
        }
        shown.append(Result(cell, scored, failed))
    return shown


def rank_of(
    processor: str | None, here: Counter[str | None], of_all: Counter[str | None]
) -> tuple[int, int, str]:
    """Return what one processor is preferred to another by: runs here, runs of all, its name."""
    return here[processor], of_all[processor], processor or ""


def runs_by_cell(
    cells: Iterable[Cell], entries: Iterable[LedgerEntry]
) -> dict[CellAddress, list[LedgerEntry]]:
    """Return the entries of each cell's runs, on every processor that has made them.

    They have the cell's names: another configuration may have others for the same inputs.
    """
    of_run: dict[str, list[LedgerEntry]] = {}
    for entry in entries:
        of_run.setdefault(entry.fingerprint, []).append(entry)
    return {
        cell.address: [
            replace(entry, run=_names(cell, file))
            for file in cell.files
            for entry in of_run.get(file.fingerprint, ())
            if cell.measure in entry.scores
        ]
        for cell in cells
    }


def entries_of(
    settings: Settings, cells: Iterable[Cell], scores: Collection[str], published: str | None = None
) -> list[LedgerEntry]:
    """Return the entries of the cells' runs: of those made here by file, then the published ones.

    ``scores`` are those of the cells' paths that exist; ``published`` is a published ledger, which
    gives what was not made here, or on another processor. A UserError names a file that is damaged.
    """
    by_path: dict[str, list[tuple[Cell, RunFile]]] = {}
    by_fingerprint: dict[str, list[tuple[Cell, RunFile]]] = {}
    for cell in cells:
        for file in cell.files:
            by_fingerprint.setdefault(file.fingerprint, []).append((cell, file))
            if file.path in scores:
                by_path.setdefault(file.path, []).append((cell, file))
    known = RunInputs(settings)
    # Models of the same recipe under two names are one run: its line is of the cells of both.
    made: dict[tuple[str, str | None], LedgerEntry] = {}
    for path in sorted(by_path):
        entry = _entry(by_path[path], settings.options.scale, known)
        key = entry.fingerprint, entry.processor
        others = made[key].table_cells if key in made else ()
        made[key] = replace(entry, table_cells=(*others, *entry.table_cells))
    entries = list(made.values())
    for entry in read_ledger(Path(published)) if published else []:
        shown = [
            (cell, file)
            for cell, file in by_fingerprint.get(entry.fingerprint, ())
            if cell.measure in entry.scores
        ]
        if shown and (entry.fingerprint, entry.processor) not in made:
            origin = settings.options.published or published
            addresses = tuple(str(cell.address) for cell, _ in shown)
            run = _names(*shown[0])
            entries.append(replace(entry, table_cells=addresses, run=run, origin=origin))
    return entries


def write_ledger(
    settings: Settings,
    *,
    cells: Iterable[Cell],
    scores: Collection[str],
    published: str | None,
    output: Path,
) -> None:
    """Write the ledger of all tables as JSON lines; the arguments are those of `entries_of`."""
    entries = entries_of(settings, cells, scores, published)
    write_lines(output, (entry.line() for entry in entries))


def _entry(shown: Sequence[tuple[Cell, RunFile]], scale: str, known: RunInputs) -> LedgerEntry:
    """Return the entry of a file, by the cells that show it."""
    cell, file = shown[0]
    content, inputs = read_json(file.path), cell.inputs(file.run, known)
    with failures_of_file(file.path, "no file of numbers; delete it and ask for it again"):
        numbers = TypeAdapter(_Numbers).validate_python(content)
        scores = _scores(numbers, measure_called(cell.measure).file)
    manifest = numbers.get("manifest", {})
    checksums, weights = _checksums(file, manifest)
    written = Path(file.path).stat().st_mtime
    return LedgerEntry(
        fingerprint=fingerprint_of(inputs),
        file=file.path,
        table_cells=tuple(str(cell.address) for cell, _ in shown),
        run=_names(cell, file),
        scale=scale,
        scores=scores,
        lines=numbers.get("lines"),
        sha256=checksums,
        weights=weights,
        processor=_processors(file, manifest),
        revision=manifest.get("revision"),
        date=datetime.fromtimestamp(written, UTC).date().isoformat(),
        inputs=inputs,
        sentences=numbers.get("sentences", {}),
        curve=tuple(numbers.get("curve", ())),
    )


def _processors(file: RunFile, manifest: Mapping[str, object]) -> str | None:
    """Return what a file's models were trained on, and what computed the file, each once.

    A job whose environment has no torch, or that needs no GPU, is on the machine of the others.
    """
    records = [folder / "training.json" for folder in _folders(file)]
    made = [read_record(record).get("manifest", {}) for record in records if record.is_file()]
    kinds = dict[str, None]()
    for stated in (*made, manifest):
        kind = ", ".join(str(part) for key in ("gpu", "processor") if (part := stated.get(key)))
        if kind and not any(kind in known for known in kinds):
            kinds[kind] = None
    return "; ".join(kinds) or None


def _folders(file: RunFile) -> list[Path]:
    return [Path(file.path).parent.with_name(member) for member in members(file.run)]


def _names(cell: Cell, file: RunFile) -> RunNames:
    return RunNames(cell.task, cell.model, file.run, cell.testset, cell.decoding)


def _scores(content: Mapping[str, object], file: ScoreFile) -> dict[str, RunScore]:
    """Return every score of such a file, by the name of its measure.

    Those of extensions' metrics have the metric's name. What no column can show is kept as well,
    by its place in the file, such as ``before_replacement.bleu.detokenized``.
    """
    names = {measure.keys: name for name, measure in MEASURES.items() if measure.file == file}
    scores: dict[str, RunScore] = {}

    def collect(content: Mapping[str, object], above: tuple[str, ...]) -> None:
        for key, value in content.items():
            keys = (*above, key)
            if isinstance(value, Mapping) and "score" in value:
                further = key if above == ("further",) else ".".join(keys)
                scores[names.get(keys, further)] = RunScore(
                    float(value["score"]), value["signature"]
                )
            elif isinstance(value, Mapping) and key != "manifest":
                collect(value, keys)
            elif keys in names and isinstance(value, int | float):
                scores[names[keys]] = RunScore(float(value), None)

    collect(content, ())
    return scores


def _checksums(file: RunFile, manifest: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the checksums of what a file of numbers was computed from, and of weights alone.

    Of a training that is its data and its model. Its record is older than the model, so models that
    a file does not state are read here.
    """
    identity = manifest.get("identity") or {}
    checksums = dict(manifest.get("sha256") or identity.get("data") or {})
    weights = dict(manifest.get("weights") or {})
    if not any(name.endswith(".safetensors") for name in checksums):
        for folder in _folders(file):
            model = folder / "model.safetensors"
            if model.is_file():
                checksums[str(model)] = sha256(model)
                weights[str(model)] = weights_sha256(model)
    return checksums, weights
