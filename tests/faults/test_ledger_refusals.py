"""What anybody may have written into a ledger, or into a file of numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.settings import Settings
from convs2s.paper import ledger as ledger_module
from convs2s.paper.cells import cells
from convs2s.paper.ledger import RunNames, planned_entry, read_ledger
from convs2s.paper.results import entries_of
from tests.support.cells import write
from tests.support.refusals import refusal, says

DIGEST = "0a" * 32
RUN = RunNames("task", "model", "seed1", "test", "beam5")
PLANNED = planned_entry({"seed": 1}, "a/test.bleu.json", RUN, "demo")
LINE = json.loads(PLANNED.line()) | {"date": "2026-01-01"}

pytestmark = pytest.mark.usefixtures("in_folder")


def message_of(*lines: bytes) -> str:
    """What the reader says of a ledger."""
    ledger = Path("ledger.jsonl")
    ledger.write_bytes(b"".join(line + b"\n" for line in lines))
    return refusal(read_ledger, ledger)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"fingerprint": DIGEST}, ("do not give its fingerprint", "download the led")),
        ({"inputs": {"seed": 2}}, ("do not give its fingerprint",)),
        ({"fingerprint": "abc"}, ("fingerprint: ",)),
        ({"extra": 1}, ("extra: ",)),
        ({"lines": "many"}, ("lines: ", "integer")),
        ({"lines": -1}, ("lines: ",)),
        ({"scores": {"a": {"score": "6.5", "signature": None}}}, ("scores.a.score",)),
        ({"scores": {"a": {"score": 6.5}}}, ("scores.a.signature", "required")),
        ({"scores": {"a": {"score": float("nan"), "signature": None}}}, ("finite",)),
        ({"processor": "<script>"}, ("processor: ",)),
        ({"processor": "[a](http://h)"}, ("processor: ",)),
        ({"processor": "![]](h)"}, ("processor: ",)),
        ({"processor": "\N{RIGHT-TO-LEFT OVERRIDE}a"}, ("processor: ",)),
        ({"processor": "a\N{LINE SEPARATOR}b"}, ("processor: ",)),
        ({"revision": "a\\|b"}, ("revision: ",)),
        ({"file": "a\nb"}, ("file: ",)),
        ({"sha256": {"model": "../model"}}, ("sha256.model",)),
        ({"sentences": {"bleu_tokenized": "{"}}, ("sentences.bleu_tokenized",)),
        ({"weights": {"model": "../model"}}, ("weights.model",)),
        ({"table_cells": ["<b>table1</b>"]}, ("table_cells.0: ",)),
        ({"run": {"task": "demo"}}, ("run.model", "required")),
        ({"date": "yesterday"}, ("date: ",)),
    ],
)
def test_a_changed_line_is_refused(
    changed: dict[str, Any], words: tuple[str, ...]
) -> None:
    lines = [json.dumps(line).encode() for line in (LINE, {**LINE, **changed})]
    message = message_of(*lines)
    says(message, "ledger.jsonl:2: ", *words)
    assert "\n" not in message


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"", b"\xff", b"[" * 100_000, b'{"fingerprint": "a"}']
)
def test_what_is_no_line_of_a_ledger_is_refused(line: bytes) -> None:
    says(message_of(line), "ledger.jsonl:1: not an entry of a ledger: ")


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps(LINE).encode()
    ledger = Path("ledger.jsonl")
    ledger.write_bytes(line + b"\n")
    size = ledger.stat().st_size
    monkeypatch.setattr(ledger_module, "MOST_BYTES", size)
    monkeypatch.setattr(ledger_module, "MOST_LINE_BYTES", size)
    assert len(read_ledger(ledger)) == 1
    monkeypatch.setattr(ledger_module, "MOST_LINE_BYTES", 100)
    says(message_of(line), "ledger.jsonl:1: ", "more than 100 bytes")
    monkeypatch.setattr(ledger_module, "MOST_BYTES", size - 1)
    says(message_of(line), "ledger.jsonl: ", "MiB")
    says(refusal(read_ledger, Path("none.jsonl")), "none.jsonl", "no such file")


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (0, [], "not a file of numbers; delete the file"),
        (0, {"manifest": []}, "not a file of numbers"),
        (0, {"bleu": {"tokenized": {"score": 1}}}, "not a file of numbers"),
        (1, [], "not the record of a training; train again"),
    ],
)
def test_a_damaged_file_of_numbers_is_named(
    demo: Settings, file: int, content: object, words: str
) -> None:
    cell = next(cell for cell in cells(demo, "table4") if cell.address.column == "bleu")
    score = Path(cell.paths[0])
    files = [score, score.with_name("training.json")]
    write(str(score), {})
    write(str(files[file]), content)
    message = refusal(entries_of, demo, [cell], [str(score)])
    says(message, files[file].name, words)
