"""Planted entries of a ledger, and what a claim comes to by them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from convs2s.config.claims import CellName, Claim, row_index
from convs2s.config.messages import validated
from convs2s.config.settings import Settings
from convs2s.paper.cells import CellAddress
from convs2s.paper.claims import Finding, judge
from convs2s.paper.ledger import LedgerEntry, RunNames, RunScore, fingerprint_of

BASE = "ConvS2S"
NO_SOURCE = "-source position"
NO_TARGET = "-target position"
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
    model: str | None = None,
    **names: str,
) -> list[LedgerEntry]:
    """A cell's entries of a ledger, seed1 first; runs of the same model have its recipe."""
    number = row_index(CellName(table=table, row=row), settings.paper, "here")
    testset = None if measure == "perplexity" else "test"
    found = []
    for seed, score in enumerate(scores, start=1):
        name = f"{row} {seed} {measure}"
        inputs = {"run": name, "trained": {"recipe": model or row}}
        run = RunNames("demo_en_fr_word", row, f"seed{seed}", testset, "beam5")
        entry = LedgerEntry(
            fingerprint=fingerprint_of(inputs),
            file=f"{row}/seed{seed}",
            table_cells=(str(CellAddress(table, number, column)),),
            run=replace(run, **names),
            scale="demo",
            scores={measure: RunScore(score, "nrefs:1")},
            lines=500,
            sha256={},
            processor="a processor",
            revision=None,
            date="2026-01-01",
            inputs=inputs,
        )
        found.append(entry)
    return found


def finding(
    settings: Settings, stated: Mapping[str, object], *found: Sequence[LedgerEntry]
) -> Finding:
    """What the one comparison or trend of a claim comes to, by these entries of a ledger."""
    claim = validated(Claim, {"says": "a claim", "source": "a paper", **stated}, "here")
    runs: dict[CellAddress, list[LedgerEntry]] = {}
    for cell in found:
        for entry in cell:
            table, row, column = entry.table_cells[0].split(", ")
            address = CellAddress(table, int(row.removeprefix("row ")) - 1, column)
            runs.setdefault(address, []).append(entry)
    (judged,) = judge(replace(settings, claims={"mine": claim}), runs)
    (result,) = judged.findings
    assert judged.verdict == result.verdict
    return result


def better(
    row: str, worse: str, column: str = "bleu", **stated: float
) -> dict[str, object]:
    """One row of table 4 against another; ``stated`` is further keys, such as ``margin``."""
    cells = [
        [{"table": "table4", "row": name, "column": column}] for name in (row, worse)
    ]
    return {"comparisons": [{"better": cells[0], "worse": cells[1], **stated}]}
