"""The benchmarks that this machine cannot run in full stay runnable."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import compare
from gpu import main, missed
from gpu_docs import NOTE, SECTION, write_docs
from page import PAGE, marks

BEGIN, END = marks(SECTION)


def run(
    root: Path, *arguments: str, script: str = "gpu.py"
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(root / "benchmarks" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_gpus_benchmark_runs_in_the_small_on_a_cpu(
    root: Path, tmp_path: Path
) -> None:
    file = tmp_path / "gpu.json"
    done = run(root, "--device", "cpu", "--tiny", "--output", str(file))
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert json.loads(file.read_text()) == figures
    found = figures["measurements"]
    assert found["golden vectors, fp32"]["holds"] is True
    assert found["training, tiny, bf16"]["tokens_per_second"] > 0
    assert found["table 3, demo, bf16, beam 5"]["sentences"] == 2
    assert found["a whole training, bf16"]["epochs"] == 1
    assert found["training, tiny, bf16, 1 workers"]["share_of_one"] == 1
    assert found["training, tiny, bf16, 2 workers"]["tokens_per_second"] > 0


def test_a_gpu_that_misses_a_budget_is_named() -> None:
    measured = {
        "golden": {"holds": False, "peak_gigabytes": 0.1},
        "training": {"share_of_matrix_rate": 0.3, "peak_gigabytes": 20.0},
        "8 workers": {"share_of_one": 0.5},
        "compiled": "failed",
        "late": "not run: no time left",
    }
    misses = missed({"device": "H100", "measurements": measured})
    assert misses == [
        "golden do not hold",
        "training: peak_gigabytes is 20.0, not in 0 to 16",
        "8 workers: share_of_one is 0.5, not in 0.8 to 1.1",
        "compiled failed, as said above",
    ]
    assert (
        missed({"device": "cpu", "measurements": {"8 workers": {"share_of_one": 0.5}}})
        == []
    )


def test_the_gpus_figures_replace_those_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nNot run.\n{END}\nafter\n")
    measured = {
        "training": {"tokens_per_second": 1234, "peak_gigabytes": None},
        "late": "not run",
    }
    figures = {
        "device": "H100",
        "torch": "2",
        "date": "2026-11-22",
        "measurements": measured,
    }
    for _ in range(2):
        write_docs(figures, page)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\nH100, torch 2, 2026-11-22")
    assert "| training | 1,234 tokens/s; not measured GB |" in text
    assert "| late | not run |" in text
    assert "Not run." not in text
    assert text.endswith(f"{END}\nafter\n")


@pytest.mark.parametrize(
    ("page", "section"), [(PAGE, compare.SECTION), (NOTE, SECTION)]
)
def test_the_page_has_a_place_for_what_is_written_into_it(
    page: Path, section: str
) -> None:
    text = page.read_text("utf-8")
    assert [text.count(mark) for mark in marks(section)] == [1, 1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_it_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    with pytest.raises(SystemExit, match=r"^gpu\.py: .*torch can use no GPU.*$"):
        main()
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_lstms_benchmark_prints_its_speed_beside_the_kernels(root: Path) -> None:
    done = run(root, "--updates", "1", "--precision", "fp32", script="lstm.py")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["bare_tokens_per_second"] > figures["update_tokens_per_second"] > 0
    assert 0 < figures["update_of_bare"] < 1


def test_attention_in_all_layers_is_what_others_are_measured_by(root: Path) -> None:
    done = run(
        root,
        "--scale",
        "demo",
        "--rounds",
        "1",
        "--updates",
        "1",
        script="attention.py",
    )
    assert done.returncode == 0, done.stderr
    shares = json.loads(done.stdout.splitlines()[-1])
    assert shares.pop("1, 2, 3, 4, 5") == 1
    assert len(shares) == 9
    assert min(shares.values()) > 0


@pytest.mark.slow
def test_scaling_runs_in_the_small(root: Path) -> None:
    done = run(
        root,
        "processes",
        "lengths",
        "beams",
        "--most",
        "2",
        "--quick",
        script="scaling.py",
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["processes"]["1"]["efficiency"] == 1
    assert figures["processes"]["2"]["per_second"] > 0
    costs = {**figures["lengths"], **figures["beams"]}
    assert len(costs) == 4
    assert all(one["ms"] > 0 for one in costs.values())
