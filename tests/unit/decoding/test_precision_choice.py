"""The precision that ``auto`` stands for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.architecture import LstmArchitecture
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.long_files import identity_of
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.model_file import load_model, save_model
from convs2s.models.build import build_network
from convs2s.models.kernels.choice import (
    Product,
)
from convs2s.models.steps import Precision
from convs2s.scoring.tuned_settings import decoding_as_run
from tests.unit.conftest import Terminal

SMALL = [Product(8, 16, 2), Product(16, 4, 1)]
AUTO = DecodingSettings(precision="auto", replace_unknown=False)
ALL: list[Precision] = ["fp32", "bf16", "int8"]
Rates = dict[Precision, float]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_lstm_anywhere_in_an_ensemble_leaves_int8_out(
    model: Path, tmp_path: Path, order: tuple[int, int]
) -> None:
    _, description = load_model(model)
    architecture = LstmArchitecture(kind="lstm", layers=1, cells=4, embedding=4)
    network = build_network(architecture, *description.sizes)
    save_model(
        tmp_path / "lstm", network.state_dict(), replace(description, architecture=architecture)
    )
    both = model, tmp_path / "lstm"
    models = [both[place] for place in order]
    assert LineTranslator(models, AUTO, "cpu").ensemble.precision == "fp32"
    with pytest.raises(UserError, match="precision: int8 is for networks of kind: convs2s"):
        LineTranslator(models, AUTO.model_copy(update={"precision": "int8"}), "cpu")


def test_what_auto_stands_for_is_said_wherever_it_matters(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    auto = LineTranslator([model], AUTO, "cpu")
    assert capsys.readouterr().err == "precision: auto is int8 here\n"
    pinned = LineTranslator([model], AUTO.model_copy(update={"precision": "int8"}), "cpu")
    lines = [ChunkTranslator(one, True, None)([(1, "a b c")]) for one in (auto, pinned)]
    assert lines[0] == lines[1]
    assert json.loads(lines[0])["precision"] == "int8"
    # A file that was begun on another machine is not gone on with in another precision.
    identities = [identity_of([model], one.settings, "cpu") for one in (auto, pinned)]
    assert identities[0] == identities[1]
    write_lines(tmp_path / "test.jsonl", [lines[0].strip()])
    stated = AUTO.model_dump(mode="json")
    run = decoding_as_run(stated, [], tmp_path / "test.jsonl")
    assert run == {**stated, "precision": "int8"}


def test_a_file_is_known_by_the_precision_that_auto_was(
    run: Terminal, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone on with where another one is the fastest, it would be of both."""
    known: list[dict[str, object]] = []

    def translated(
        _: object, __: Path, ___: Path, identity: dict[str, object], **____: Any
    ) -> None:
        known.append(identity)

    monkeypatch.setattr("convs2s.decoding.long_files.translate_long_file", translated)
    write_lines(tmp_path / "in", ["w1"])
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    run("translate", model, *files, "--precision", "auto", "--no-replace-unknown")
    assert [one["precision"] for one in known] == ["int8"]


def test_lines_that_do_not_say_their_precision_are_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "test.jsonl", ['{"line": 1}'])
    with pytest.raises(UserError, match=r"test\.jsonl:1: no translation of this program"):
        decoding_as_run({"precision": "auto"}, [], tmp_path / "test.jsonl")


def test_the_default_is_the_same_on_every_machine() -> None:
    assert DecodingSettings().precision == "fp32"
