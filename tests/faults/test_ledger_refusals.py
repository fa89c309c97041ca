"""What anybody may have written into a ledger, or into a file of numbers."""

import json
from pathlib import Path

import pytest

from convs2s.config.settings import Settings
from convs2s.paper import ledger as ledger_module
from convs2s.paper.cells import cells
from convs2s.paper.ledger import RunNames, planned_entry, read_ledger
from convs2s.paper.results import entries_of
from tests.support.cells import write
from tests.support.refusals import refusal, refuses, rows, says

RUN = RunNames("task", "model", "seed1", "test", "beam5")
PLANNED = planned_entry({"seed": 1}, "a/test.bleu.json", RUN, "demo")
LINE = json.loads(PLANNED.line()) | {"date": "2026-01-01"}

pytestmark = pytest.mark.usefixtures("in_folder")


def message_of(*lines: bytes) -> str:
    """What the reader says of a ledger."""
    ledger = Path("ledger.jsonl")
    ledger.write_bytes(b"".join(line + b"\n" for line in lines))
    return refusal(read_ledger, ledger)


CHANGES = r"""
{"inputs": {"seed": 2}} => do not give its fingerprint ... download the led
{"fingerprint": "abc"} => fingerprint:
{"extra": 1} => extra:
{"lines": "many"} => lines: ... integer
{"lines": -1} => lines:
{"scores": {"a": {"score": "6.5", "signature": null}}} => scores.a.score
{"scores": {"a": {"score": 6.5}}} => scores.a.signature ... required
{"scores": {"a": {"score": NaN, "signature": null}}} => finite
{"processor": "<script>"} => processor:
{"processor": "[a](http://h)"} => processor:
{"processor": "![]](h)"} => processor:
{"processor": "\N{RIGHT-TO-LEFT OVERRIDE}a"} => processor:
{"processor": "a\N{LINE SEPARATOR}b"} => processor:
{"revision": "a\\\\|b"} => revision:
{"file": "a\\nb"} => file:
{"sha256": {"model": "../model"}} => sha256.model
{"sentences": {"bleu_tokenized": "{"}} => sentences.bleu_tokenized
{"weights": {"model": "../model"}} => weights.model
{"table_cells": ["<b>table1</b>"]} => table_cells.0:
{"run": {"task": "demo"}} => run.model ... required
{"date": "yesterday"} => date:
"""


def test_a_changed_line_and_what_is_none_is_refused() -> None:
    for change, words in rows(CHANGES):
        changed = LINE | json.loads(change)
        message = message_of(*(json.dumps(line).encode() for line in (LINE, changed)))
        says(message, "ledger.jsonl:2: ", words)
        assert "\n" not in message
    for line in (b"{", b"[]", b"", b"\xff", b"[" * 100_000, b'{"fingerprint": "a"}'):
        says(message_of(line), "ledger.jsonl:1: not an entry of a ledger: ")


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps(LINE).encode()
    size = len(line) + 1
    ledger = Path("ledger.jsonl")
    ledger.write_bytes(line + b"\n")
    monkeypatch.setattr(ledger_module, "MOST_BYTES", size)
    monkeypatch.setattr(ledger_module, "MOST_LINE_BYTES", size)
    assert len(read_ledger(ledger)) == 1
    monkeypatch.setattr(ledger_module, "MOST_LINE_BYTES", 100)
    says(message_of(line), "ledger.jsonl:1: ", "more than 100 bytes")
    monkeypatch.setattr(ledger_module, "MOST_BYTES", size - 1)
    says(message_of(line), "ledger.jsonl: ", "MiB")
    refuses("none.jsonl ... no such file", read_ledger, Path("none.jsonl"))


NO_NUMBERS = """
test_filtered.beam5.bleu.json => [] => not a file of numbers; delete the file
test_filtered.beam5.bleu.json => {"manifest": []} => not a file of numbers
test_filtered.beam5.bleu.json => {"bleu": {"tokenized": {"score": 1}}} => not a file of numbers
training.json => [] => not the record of a training; train again
"""


def test_a_damaged_file_of_numbers_is_named(demo: Settings) -> None:
    cell = cells(demo, "table4")[1]
    score = cell.paths[0]
    for name, content, words in rows(NO_NUMBERS):
        write(score, {})
        Path(score).with_name(name).write_text(content)
        says(refusal(entries_of, demo, [cell], [score]), name, words)
