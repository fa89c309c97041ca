"""The precision that ``auto`` stands for."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.long_files import identity_of
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.scoring.tuned_settings import decoding_as_run
from tests.unit.conftest import Terminal

AUTO = DecodingSettings(precision="auto", replace_unknown=False)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_lstm_anywhere_in_an_ensemble_leaves_int8_out(
    model: Path, recurrent: Path, order: tuple[int, int]
) -> None:
    models = [(model, recurrent)[place] for place in order]
    assert LineTranslator(models, AUTO, "cpu").ensemble.precision == "fp32"
    with pytest.raises(
        UserError, match="`precision: int8` is only for networks of kind convs2s"
    ):
        LineTranslator(models, AUTO.model_copy(update={"precision": "int8"}), "cpu")


def test_what_auto_stands_for_is_said_wherever_it_matters(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    auto = LineTranslator([model], AUTO, "cpu")
    assert capsys.readouterr().err == "precision: auto is int8 here\n"
    pinned = LineTranslator(
        [model], AUTO.model_copy(update={"precision": "int8"}), "cpu"
    )
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
    with pytest.raises(
        UserError, match=r"test\.jsonl:1: not a translation by this program"
    ):
        decoding_as_run({"precision": "auto"}, [], tmp_path / "test.jsonl")
