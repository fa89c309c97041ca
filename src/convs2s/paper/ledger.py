"""The ledger: a JSON line for each run that the tables' cells rest on, read from its files."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from convs2s.files import read_json, write_lines
from convs2s.paper.cells import MEASURES, Cell

_INPUTS = ("identity", "sha256", "decoding")
"""What a manifest says that the numbers of a run depend on, whatever the machine."""


@dataclass(frozen=True)
class LedgerEntry:
    """One file of numbers of one run.

    Attributes:
        fingerprint: of the run's inputs: equal inputs have equal ones.
        file: the file, from the folder of the workflow's run.
        table_cells: for each cell that shows it "TABLE, row NUMBER, COLUMN".
        run: task, model, run, test set and decoding.
        scale: whose stand-ins it was run with.
        scores: measure -> score and signature, of the measures that cells show.
        lines: of the test set; None where there is none.
        sha256: path of each file that it was computed from -> checksum, the model's among them.
        processor: what it was computed on.
        revision: of the code.
        date: the UTC day of the file.
    """

    fingerprint: str
    file: str
    table_cells: tuple[str, ...]
    run: Mapping[str, str | None]
    scale: str
    scores: Mapping[str, Mapping[str, object]]
    lines: int | None
    sha256: Mapping[str, str]
    processor: str | None
    revision: str | None
    date: str


def write_ledger(
    *, cells: Mapping[str, Iterable[Cell]], scores: Collection[str], scale: str, output: Path
) -> None:
    """Write the ledger of the runs whose files are there.

    Args:
        cells: table -> its cells.
        scores: those of the cells' paths that exist.
        scale: name of the scale.
        output: the JSON lines, sorted by file.
    """
    shown: dict[str, list[tuple[str, Cell]]] = {}
    for table, measured in cells.items():
        for cell in measured:
            for path in cell.paths:
                if path in scores:
                    shown.setdefault(path, []).append((table, cell))
    entries = (_entry(path, shown[path], scale) for path in sorted(shown))
    write_lines(output, (json.dumps(vars(entry), ensure_ascii=False) for entry in entries))


def fingerprint_of_run(manifest: Mapping[str, object]) -> str:
    """Return the checksum of a run's inputs, as its manifest states them."""
    stated = {key: manifest[key] for key in _INPUTS if key in manifest}
    return sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def _entry(path: str, shown: list[tuple[str, Cell]], scale: str) -> LedgerEntry:
    content = read_json(path)
    assert isinstance(content, dict)
    manifest, cell = content.get("manifest", {}), shown[0][1]
    named = {key: getattr(cell, key) for key in ("task", "model", "testset", "decoding")}
    return LedgerEntry(
        fingerprint=fingerprint_of_run(manifest),
        file=path,
        table_cells=tuple(f"{table}, row {one.row + 1}, {one.column}" for table, one in shown),
        run={**named, "run": Path(path).parent.name},
        scale=scale,
        scores={one.measure: _score(content, one.measure) for _, one in shown},
        lines=content.get("lines"),
        sha256=manifest.get("sha256", {}),
        processor=manifest.get("processor"),
        revision=manifest.get("revision"),
        date=datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).date().isoformat(),
    )


def _score(content: Mapping[str, object], measure: str) -> Mapping[str, object]:
    """Return a measure's score and signature; perplexity comes without one."""
    value: object = content
    for key in MEASURES[measure].keys:
        assert isinstance(value, Mapping)
        value = value[key]
    return value if isinstance(value, Mapping) else {"score": value, "signature": None}
