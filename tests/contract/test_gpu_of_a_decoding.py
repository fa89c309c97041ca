"""Jobs beside each other on one machine: each computes on a GPU of its own."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from convs2s import devices
from convs2s.cli.main import main
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.rescoring import list_n_best, score_n_best
from convs2s.decoding.test_sets import decode_test_set, time_decoding
from convs2s.decoding.translate import LineTranslator, translator_of_job
from convs2s.devices import VISIBLE, own_gpus
from convs2s.files.text import write_lines
from tests.support.processes import wait_for

EIGHT = list(map(str, range(8)))


@pytest.fixture
def computed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The GPUs that jobs compute on, as if this machine had eight; they compute on its CPU."""
    names: list[str] = []

    def pick_cpu(name: str, workers: int) -> str:
        names.append(os.environ[VISIBLE])
        return "cpu"

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv(VISIBLE, "")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(devices, "pick_device", pick_cpu)
    monkeypatch.setattr(devices, "SECONDS_BETWEEN_TRIES", 0.05)
    return names


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A test set's raw text."""
    write_lines(tmp_path / "source", ["w1 w2 w3", "w4 w5"])
    return tmp_path / "source"


def translator_of(model: Path) -> AbstractContextManager[LineTranslator]:
    """What a job translates with."""
    return translator_of_job([model], DecodingSettings(), device="auto", threads=1)


def decode(model: Path, text: Path) -> None:
    with translator_of(model) as translator:
        decode_test_set(
            translator,
            source=text,
            lines=text.with_name("lines"),
            text=text.with_name("text"),
        )


def time_it(model: Path, text: Path) -> None:
    with translator_of(model) as translator:
        time_decoding(
            translator,
            source=text,
            output=text.with_name("seconds"),
            device="auto",
            threads=1,
            manifest={"processor": "a processor"},
        )


def list_best(model: Path, text: Path) -> None:
    with translator_of(model) as translator:
        list_n_best(translator, source=text, output=text.with_name("list"))


def score(model: Path, text: Path) -> None:
    write_lines(text.with_name("list"), ["0 ||| w1 w2 ||| A= -1 ||| -1"])
    score_n_best(
        models=[model],
        source=text,
        n_best=text.with_name("list"),
        output=text.with_name("scored"),
        length_penalty=1.0,
        device="auto",
        threads=1,
    )


def translate_by_hand(model: Path, text: Path) -> None:
    main(["translate", str(model), "--input", str(text), "--quiet"])


def score_by_hand(model: Path, text: Path) -> None:
    main(["score-pairs", str(model), "--source", str(text), "--target", str(text)])


BY_HAND = (translate_by_hand, score_by_hand)


@pytest.mark.parametrize("work", [decode, time_it, list_best, score, *BY_HAND])
def test_no_job_takes_the_gpu_of_a_training(
    model: Path, text: Path, computed_on: list[str], work: Callable[[Path, Path], None]
) -> None:
    with own_gpus(8, 1) as training:
        assert training == ["0"]
        work(model, text)
    assert computed_on == ["1"]


@pytest.mark.parametrize("work", BY_HAND)
def test_who_translates_by_hand_shares_a_gpu_where_none_is_free(
    model: Path,
    text: Path,
    computed_on: list[str],
    capfd: pytest.CaptureFixture[str],
    work: Callable[[Path, Path], None],
) -> None:
    with own_gpus(8, 8):
        work(model, text)
    assert computed_on == ["0"]
    assert (
        "too few GPUs are free: sharing 0 with other jobs\n" in capfd.readouterr().err
    )


def test_what_a_scheduler_has_granted_is_taken(
    model: Path, text: Path, computed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_gpus(8, 8):
        monkeypatch.setenv(VISIBLE, "GPU-1f")
        decode(model, text)
    assert computed_on == ["GPU-1f"]


def decode_and_say(folder: Path, model: Path) -> None:
    """Decode in a process of its own, which holds its GPU until all hold one."""

    def pick_cpu(name: str, workers: int) -> str:
        (folder / f"gpu.{os.environ[VISIBLE]}").touch()
        wait_for((folder / "go").exists)
        return "cpu"

    pytest.MonkeyPatch().setattr(devices, "pick_device", pick_cpu)
    write_lines(folder / f"{os.getpid()}" / "source", ["w1 w2 w3"])
    wait_for((folder / "begin").exists)
    decode(model, folder / f"{os.getpid()}" / "source")


@pytest.mark.usefixtures("computed_on")
def test_eight_decodings_land_on_eight_gpus_after_the_training_on_one_has_ended(
    model: Path, tmp_path: Path
) -> None:
    def taken() -> set[str]:
        return {path.suffix[1:] for path in tmp_path.glob("gpu.*")}

    start = partial(
        get_context("fork").Process, target=decode_and_say, args=(tmp_path, model)
    )
    processes = [start() for _ in EIGHT]
    for process in processes:
        process.start()
    with own_gpus(8, 1):  # which no fork has inherited
        (tmp_path / "begin").touch()
        wait_for(lambda: len(taken()) == 7)
        assert taken() == {*EIGHT} - {"0"}
    wait_for(lambda: taken() == {*EIGHT})
    (tmp_path / "go").touch()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 8
