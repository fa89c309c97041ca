"""What the rules tell their jobs: names of runs, the command of a training, its environment."""

import re
import subprocess
from pathlib import Path

import yaml
from snakemake.utils import format as formatted

from convs2s.config.runs import alternatives, members
from convs2s.pipeline import process


def test_alternatives_match_names_exactly() -> None:
    names = re.compile(alternatives(["a", "a.b"]))
    found = [name for name in ("a", "a.b", "axb", "ab", "") if names.fullmatch(name)]
    assert found == ["a", "a.b"]
    assert not re.fullmatch(alternatives([]), "")


def test_an_ensemble_is_of_the_first_seeds() -> None:
    assert members("ensemble3") == ["seed1", "seed2", "seed3"]


def test_a_training_names_the_files_that_it_has() -> None:
    files = yaml.safe_load("""
        dataset: [results/my task/dataset/train.arrow, valid.arrow]
        start: []
        dictionary: a.tsv
        candidates: []
        truecasers: [s.tsv, t.tsv]
    """)
    machine = {"checkpoint_minutes": 5.0, "tensorboard": True}
    assert process.options_of_training(files, machine) == (
        "'results/my task' --dictionary a.tsv --truecasers s.tsv t.tsv "
        "--checkpoint-minutes 5.0 --tensorboard"
    )


def ends(speaks: str, log: Path, after: str = "") -> int:
    """The exit status of a training's command with its log, in Snakemake's shell."""
    command = formatted(process.logged(speaks, before="none"), log=log)
    shell = f"set -euo pipefail; ({command}){after}"
    return subprocess.run(["bash", "-c", shell], check=False).returncode


def test_a_training_goes_on_where_nobody_reads_the_terminal(tmp_path: Path) -> None:
    speaks = "bash -c 'for line in 1 2 3; do echo $line; sleep 0.1; done'"
    assert ends(speaks, tmp_path / "train.log", " | true") == 0
    assert (tmp_path / "train.log").read_text() == "1\n2\n3\n"


def test_a_full_disk_below_the_log_fails_no_training() -> None:
    for status in (0, 75):
        assert ends(f"bash -c 'echo 1; exit {status}'", Path("/dev/full")) == status
