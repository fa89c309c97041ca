"""The ledger: a JSON line for each run that the tables' cells rest on, read from its files."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json, write_lines
from convs2s.paper.cells import MEASURES, Cell, inputs_of
from convs2s.paper.ledger_entry import LedgerEntry, RunScore, read_ledger
from convs2s.paper.run_inputs import RunInputs, fingerprint_of

__all__ = ["LedgerEntry", "entries_of", "write_ledger"]


def write_ledger(
    settings: Settings,
    *,
    cells: Mapping[str, Sequence[Cell]],
    scores: Collection[str],
    published: str | None,
    output: Path,
) -> None:
    """Write the ledger of the runs whose files are there, and of those taken from a published one.

    Args:
        settings: the configuration.
        cells: table -> its cells.
        scores: those of the cells' paths that exist.
        published: a published ledger, which gives runs that were not made here; None without one.
        output: the JSON lines, sorted by file, those of the published ledger last.

    Raises:
        UserError: a file of scores is not JSON, or the published ledger is damaged.
    """
    entries = entries_of(settings, cells, scores)
    if published:
        entries += _taken(cells, entries, read_ledger(Path(published)), published)
    write_lines(output, (json.dumps(vars(entry), ensure_ascii=False) for entry in entries))


def entries_of(
    settings: Settings, cells: Mapping[str, Iterable[Cell]], scores: Collection[str]
) -> list[LedgerEntry]:
    """Return the entries of the runs whose files are there, sorted by file.

    Args:
        settings: the configuration.
        cells: table -> its cells.
        scores: those of the cells' paths that exist.

    Raises:
        UserError: a file of scores is not JSON.
    """
    shown: dict[str, list[tuple[str, Cell]]] = {}
    for table, measured in cells.items():
        for cell in measured:
            for path in cell.paths:
                if path in scores:
                    shown.setdefault(path, []).append((table, cell))
    known = RunInputs(settings)
    return [_entry(path, shown[path], settings.options.scale, known) for path in sorted(shown)]


def _taken(
    cells: Mapping[str, Sequence[Cell]],
    own: Iterable[LedgerEntry],
    published: Iterable[LedgerEntry],
    origin: str,
) -> Iterator[LedgerEntry]:
    """Yield the published entries of cells' runs that were not made here, by our own names."""
    made = {entry.fingerprint for entry in own}
    for entry in {one.fingerprint: one for one in published}.values():
        shown = [
            (table, cell)
            for table, measured in cells.items()
            for cell in measured
            if entry.fingerprint in cell.fingerprints and cell.measure in entry.scores
        ]
        if shown and entry.fingerprint not in made:
            names = tuple(_name_of(*one) for one in shown)
            _, cell = shown[0]
            run = _names_of_run(cell, cell.runs[cell.fingerprints.index(entry.fingerprint)])
            yield replace(entry, table_cells=names, run=run, origin=origin)


def _name_of(table: str, cell: Cell) -> str:
    return f"{table}, row {cell.row + 1}, {cell.column}"


def _entry(path: str, shown: list[tuple[str, Cell]], scale: str, known: RunInputs) -> LedgerEntry:
    content = read_json(path)
    assert isinstance(content, dict)
    manifest, (_, cell) = content.get("manifest", {}), shown[0]
    file = MEASURES[cell.measure].file
    run = cell.runs[cell.paths.index(path)]
    inputs = inputs_of(cell, run, known)
    return LedgerEntry(
        fingerprint=fingerprint_of(inputs),
        file=path,
        table_cells=tuple(_name_of(table, one) for table, one in shown),
        run=_names_of_run(cell, run),
        scale=scale,
        scores=_scores(content, file),
        lines=content.get("lines"),
        sha256=_checksums(Path(path), run, manifest),
        processor=manifest.get("processor"),
        revision=manifest.get("revision"),
        date=datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).date().isoformat(),
        inputs=inputs,
        sentences=content.get("sentences", {}),
    )


def _names_of_run(cell: Cell, run: str) -> dict[str, str | None]:
    """Return task, model, run, and test set and decoding, of which a training reads neither."""
    file = MEASURES[cell.measure].file
    read = {key: getattr(cell, key) for key in ("testset", "decoding") if f"{{{key}}}" in file}
    return {
        "task": cell.task,
        "model": cell.model,
        "run": run,
        "testset": read.get("testset"),
        "decoding": read.get("decoding"),
    }


def _scores(content: Mapping[str, object], file: str) -> dict[str, RunScore]:
    """Return the scores of all measures that are found in such a file, and are there."""
    found = {
        name: _score(content, measure.keys)
        for name, measure in MEASURES.items()
        if measure.file == file
    }
    return {name: score for name, score in found.items() if score}


def _score(content: Mapping[str, object], keys: Iterable[str]) -> RunScore | None:
    """Return a score and its signature; None where the file has none."""
    value: object = content
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    if isinstance(value, Mapping):
        return RunScore(score=float(value["score"]), signature=value["signature"])
    assert isinstance(value, int | float)
    return RunScore(score=float(value), signature=None)


def _checksums(path: Path, run: str, manifest: Mapping[str, object]) -> dict[str, str]:
    """Return what a file of numbers was computed from; of a training the data and its model.

    Where the file does not state the models that it rests on, as a training's own record, which is
    written before its model, they are read here.
    """
    stated, identity = manifest.get("sha256"), manifest.get("identity")
    known = stated or (identity.get("data") if isinstance(identity, dict) else None)
    checksums = dict(known) if isinstance(known, dict) else {}
    if any(name.endswith(".safetensors") for name in checksums):
        return checksums
    folders = (path.parent.with_name(member) for member in members(run))
    models = [folder / "model.safetensors" for folder in folders]
    return checksums | {str(model): sha256(model) for model in models if model.is_file()}
