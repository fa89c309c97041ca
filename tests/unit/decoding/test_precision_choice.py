"""The precision that ``auto`` stands for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.long_files import identity_of
from convs2s.decoding.streams import ChunkTranslator
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.models.kernels import choice
from convs2s.models.kernels.choice import (
    Product,
    chosen_precision,
    decoding_rates,
    fastest_precision,
    precisions,
)
from convs2s.models.kernels.linear_map import runs_int8
from convs2s.models.steps import Precision
from convs2s.scoring.tuned_settings import decoding_as_run
from tests.support import networks
from tests.support.kernels import NEEDS_INT8
from tests.unit.conftest import Terminal

SMALL = [Product(8, 16, 2), Product(16, 4, 1)]
AUTO = DecodingSettings(precision="auto", replace_unknown=False)
ALL: list[Precision] = ["fp32", "bf16", "int8"]
Rates = dict[Precision, float]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "convs2s"


def measure(monkeypatch: pytest.MonkeyPatch, rates: Rates) -> None:
    monkeypatch.setattr(choice, "decoding_rates", lambda _, rows: dict.fromkeys(rows, rates))


def test_what_is_measured_is_a_rate_of_each_precision() -> None:
    found = decoding_rates(SMALL, [1, 5])
    assert list(found) == [1, 5]
    assert all(list(one) == precisions() for one in found.values())
    assert all(rate > 0 for one in found.values() for rate in one.values())
    assert ("int8" in precisions()) == runs_int8()


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((1.0, 1.6, 2.5), "int8"),
        ((1.0, 0.4, 1.6), "int8"),
        ((1.0, 1.6, 0.9), "bf16"),
        ((1.0, 2.0, 2.3), "bf16"),  # int8 rounds more and gains too little
        ((1.0, 1.15, 0.9), "fp32"),  # bf16 gains too little
        ((1.0, 0.2, 0.5), "fp32"),
    ],
)
def test_it_is_never_slower_than_fp32(
    monkeypatch: pytest.MonkeyPatch, rates: tuple[float, ...], expected: Precision
) -> None:
    measure(monkeypatch, dict(zip(ALL, rates, strict=True)))
    assert fastest_precision(SMALL, 320, ALL) == expected
    measure(monkeypatch, dict.fromkeys(ALL, 1.0))
    assert fastest_precision(SMALL, 9_000, ALL) == expected  # kept, as of any large number
    assert fastest_precision(SMALL, 5, ALL) == "fp32"
    assert fastest_precision(SMALL, 320, ["fp32"]) == "fp32"


@NEEDS_INT8
def test_what_auto_stands_for_is_said_wherever_it_matters(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gain: Rates = {"fp32": 1.0, "bf16": 1.0, "int8": 2.0}
    measure(monkeypatch, gain)
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
    measure(monkeypatch, {"fp32": 1.0, "bf16": 2.0, "int8": 1.0})
    known: list[dict[str, object]] = []

    def translated(
        _: object, __: Path, ___: Path, identity: dict[str, object], **____: Any
    ) -> None:
        known.append(identity)

    monkeypatch.setattr("convs2s.decoding.long_files.translate_long_file", translated)
    write_lines(tmp_path / "in", ["w1"])
    files = ("--input", tmp_path / "in", "--output", tmp_path / "out")
    run("translate", model, *files, "--precision", "auto", "--no-replace-unknown")
    assert [one["precision"] for one in known] == ["bf16"]


@NEEDS_INT8
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_lstm_anywhere_in_an_ensemble_leaves_int8_out(
    monkeypatch: pytest.MonkeyPatch, order: tuple[int, int]
) -> None:
    measure(monkeypatch, {"fp32": 1.0, "bf16": 1.5, "int8": 9.0})
    both = [networks.network(), networks.lstm()]
    assert chosen_precision(AUTO, [both[place] for place in order], "cpu") == "bf16"
    assert chosen_precision(AUTO, both[:1], "cpu") == "int8"


def test_lines_that_do_not_say_their_precision_are_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "test.jsonl", ['{"line": 1}'])
    with pytest.raises(UserError, match=r"test\.jsonl:1: no translation of this program"):
        decoding_as_run({"precision": "auto"}, [], tmp_path / "test.jsonl")


def test_without_a_cache_it_is_fp32(
    model: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.parent.write_text("a file in the folder's place")
    assert LineTranslator([model], AUTO, "cpu").ensemble.precision == "fp32"
    assert "precision: auto is not measured" in capsys.readouterr().err


def test_where_there_is_no_home_for_a_cache_it_is_fp32(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    assert LineTranslator([model], AUTO, "cpu").ensemble.precision == "fp32"
    assert "set XDG_CACHE_HOME; precision: auto is not measured" in capsys.readouterr().err


def test_the_default_is_the_same_on_every_machine() -> None:
    assert DecodingSettings().precision == "fp32"


def test_measuring_ends_where_nothing_has_been_measured_before() -> None:
    """What maps of fp32 are made of is measured before the precisions are, and not meanwhile."""
    program = (
        "from convs2s.models.kernels.choice import Product, fastest_precision; "
        "print(fastest_precision([Product(8, 16, 2)], 5, ['fp32', 'bf16']))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert run.stdout.strip() in {"fp32", "bf16"}, run.stderr
