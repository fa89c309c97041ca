"""Jobs beside each other on one machine: each decodes on a GPU of its own."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from convs2s.cli.main import main
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.device import search_device
from convs2s.decoding.rescoring import score_n_best
from convs2s.decoding.translate import translator_of_job
from convs2s.devices import VISIBLE, own_gpus


@pytest.fixture
def computed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The GPUs that jobs compute on, as if this machine had eight; they compute on its CPU."""
    names: list[str] = []

    def pick_cpu(*_: object) -> str:
        names.append(os.environ[VISIBLE])
        return "cpu"

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv(VISIBLE, "")
    monkeypatch.setattr(torch.cuda, "device_count", Mock(return_value=8))
    monkeypatch.setattr("convs2s.devices.pick_device", pick_cpu)
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("w1 w2 w3\nw4 w5\n")
    return names


def test_whether_there_is_a_gpu_is_asked_of_torch_where_it_is(
    computed_on: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search_device("auto") == "cpu"
    monkeypatch.setattr("importlib.util.find_spec", Mock(return_value=None))
    assert search_device("auto") == "cpu"
    assert computed_on == [""]


def test_no_job_takes_the_gpu_of_a_training(
    model: Path, computed_on: list[str]
) -> None:
    Path("list").write_text("0 ||| w1 w2 ||| A= -1 ||| -1\n")
    search = DecodingSettings()
    with own_gpus(8, 1) as training:
        assert training == ["0"]
        with translator_of_job([model], search, device="auto", threads=1) as translator:
            list(translator.translate(["w1 w2 w3"]))
        score_n_best(
            models=[model],
            source=Path("text"),
            n_best=Path("list"),
            output=Path("scored"),
            length_penalty=1.0,
            device="auto",
            threads=1,
        )
    assert computed_on == ["1", "1"]


@pytest.mark.parametrize(("taken", "used"), [(1, "1"), (8, "0")])
def test_who_translates_by_hand_shares_a_gpu_where_none_is_free(
    model: Path,
    computed_on: list[str],
    capfd: pytest.CaptureFixture[str],
    taken: int,
    used: str,
) -> None:
    with own_gpus(8, taken):
        main(f"translate {model} --input text".split())
        main(f"score-pairs {model} --source text --target text".split())
    assert computed_on == [used, used]
    said = "too few GPUs are free: sharing 0 with other jobs\n"
    assert (said in capfd.readouterr().err) == (taken == 8)
