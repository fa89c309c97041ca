"""Planted entries of a ledger, and what a claim comes to by them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from convs2s.config.claims import CellName, Claim, row_index
from convs2s.config.messages import validated
from convs2s.config.settings import Settings
from convs2s.paper.cells import CellAddress
from convs2s.paper.claims import Finding, judge
from convs2s.paper.evidence import EntriesOfCells
from convs2s.paper.ledger import LedgerEntry, RunNames, RunScore, fingerprint_of

BASE, NO_SOURCE, NO_TARGET = "ConvS2S", "-source position", "-target position"
NONE = "-source & target position"
BEFORE = "bleu_tokenized_before_replacement"


def entries(
    settings: Settings,
    row: str,
    scores: Sequence[float],
    *,
    table: str = "table4",
    column: str = "bleu",
    measure: str = BEFORE,
    lines: int = 500,
    **names: str,
) -> list[LedgerEntry]:
    """A cell's entries of a ledger, seed1 first."""
    number = row_index(CellName(table=table, row=row), settings.paper, "here")
    testset = None if measure == "perplexity" else "test"
    run = RunNames("demo_en_fr_word", row, "", testset, decoding="beam5")
    model = names.get("model", row)
    return [
        LedgerEntry(
            fingerprint=fingerprint_of(
                inputs := _inputs(f"{row}/seed{seed} {measure}", model)
            ),
            file=f"{row}/seed{seed}",
            table_cells=(str(CellAddress(table, number, column)),),
            run=replace(run, run=f"seed{seed}", **names),
            scale="demo",
            scores={measure: RunScore(score, "nrefs:1")},
            lines=lines,
            sha256={"model.safetensors": sha256(f"{model} {seed}")},
            processor="a processor",
            revision=None,
            date="2026-01-01",
            inputs=inputs,
        )
        for seed, score in enumerate(scores, start=1)
    ]


def _inputs(run: str, model: str) -> dict[str, object]:
    return {"run": run, "trained": {"recipe": model}}


def by_cell(entries: Iterable[LedgerEntry]) -> EntriesOfCells:
    """The entries by the cells that they name."""
    runs: dict[CellAddress, list[LedgerEntry]] = {}
    for entry in entries:
        for named in entry.table_cells:
            table, row, column = named.split(", ")
            address = CellAddress(table, int(row.removeprefix("row ")) - 1, column)
            runs.setdefault(address, []).append(entry)
    return runs


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def finding(
    settings: Settings, stated: Mapping[str, object], *found: list[LedgerEntry]
) -> Finding:
    """What the one comparison or trend of a claim comes to, by these entries of a ledger."""
    claim = validated(Claim, {"says": "a claim", "source": "a paper", **stated}, "here")
    runs = by_cell(entry for cell in found for entry in cell)
    (judged,) = judge(replace(settings, claims={"mine": claim}), runs)
    (result,) = judged.findings
    assert judged.verdict == result.verdict
    return result


def better(
    row: str, worse: str, column: str = "bleu", **stated: float
) -> dict[str, object]:
    """One row of table 4 against another; ``stated`` is further keys, such as ``margin``."""
    sides = {
        side: [{"table": "table4", "row": name, "column": column}]
        for side, name in (("better", row), ("worse", worse))
    }
    return {"comparisons": [{**sides, **stated}]}
