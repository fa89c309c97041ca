"""The ledger: a line for each run that is there, nothing typed in."""

import json
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.paper.ledger import fingerprint_of_run, write_ledger
from tests.support.cells import cells


def test_a_line_holds_what_a_run_scored_and_on_what_it_rests(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    demo = load(root, {"scale": "demo"})
    measured = {name: cells(demo, name) for name in ("table1", "table4", "figure2")}
    bleu = next(cell for cell in measured["table4"] if cell.column == "bleu").paths[0]
    ppl = next(cell for cell in measured["table4"] if cell.column == "ppl").paths[0]
    scored = {"tokenized": {"score": 21.5, "signature": "nrefs:1"}}
    manifest = {"sha256": {"model.safetensors": "0a"}, "processor": "a processor"}
    trained = {"identity": {"seed": 1}, "processor": "a processor"}
    for path, content in (
        (bleu, {"lines": 500, "before_replacement": {"bleu": scored}, "manifest": manifest}),
        (ppl, {"validation_perplexity": 6.5, "manifest": trained}),
    ):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(content), encoding="utf-8")
    write_ledger(cells=measured, scores=[bleu, ppl], scale="demo", output=Path("ledger.jsonl"))
    entries = [json.loads(line) for line in Path("ledger.jsonl").read_text("utf-8").splitlines()]
    assert [one["file"] for one in entries] == sorted([bleu, ppl])
    score, perplexity = sorted(entries, key=lambda one: one["file"] != bleu)
    assert score["scores"] == {"bleu_tokenized_before_replacement": scored["tokenized"]}
    assert score["table_cells"] == ["table4, row 1, bleu"] + [
        f"figure2, row {row}, bleu" for row in (13, 30)
    ]
    assert (score["lines"], score["processor"]) == (500, "a processor")
    assert score["sha256"] == manifest["sha256"]
    assert score["run"]["run"] == "seed1"
    assert perplexity["scores"] == {"perplexity": {"score": 6.5, "signature": None}}
    assert score["fingerprint"] == fingerprint_of_run(manifest) != perplexity["fingerprint"]


def test_a_fingerprint_is_of_the_inputs_alone() -> None:
    inputs = {"sha256": {"a": "0"}, "decoding": {"beam": 5}}
    assert fingerprint_of_run({**inputs, "processor": "x"}) == fingerprint_of_run(inputs)
    assert fingerprint_of_run({**inputs, "decoding": {"beam": 4}}) != fingerprint_of_run(inputs)
