"""Commands with outputs where nothing can be written, and options out of their bounds."""

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.identity import training_settings
from convs2s.training.run import train
from tests.faults.systems import READS_PROC
from tests.support import tiny
from tests.support.checkout import check_out
from tests.support.refusals import says

TRANSLATE = "translate absent.safetensors"
TRAIN = "train absent --model demo --output model.safetensors"
ROUGE = "score rouge absent --reference absent"
PAIRS = "score-pairs absent.safetensors --source absent --n-best absent"
TARGET = "score-pairs absent.safetensors --source absent --target absent"
IMPORT = "import fairseq a --source-dictionary b --target-dictionary c --output m"
PLACE = "typo/b: cannot be written: no folder typo: make it first"


def fault(command: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    return str(ended.value)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{TRANSLATE} --beam 0", "beam: expected at least 1, not 0"),
        (f"{TRANSLATE} --beam 1025", "beam: expected at most 1024, not 1025"),
        (f"{TRANSLATE} --batch-tokens 0", "batch_tokens: expected at least 1, not 0"),
        (f"{TRANSLATE} --length-penalty nan", "length_penalty: expected"),
        (f"{TRANSLATE} --unknown-penalty inf", "unknown_penalty: expected a finite"),
        (f"{TRANSLATE} --threads 0", "threads: expected at least 1, not 0"),
        (f"{TRANSLATE} --threads 1025", "threads: expected at most 1024, not 1025"),
        (f"{TRANSLATE} --workers 1025", "workers: expected at most 1024, not 1025"),
        (f"{TRAIN} --threads 1025", "threads: expected at most 1024, not 1025"),
        (f"{TRAIN} --workers -1", "workers: expected at least 0, not -1"),
        (f"{TRAIN} --nodes 0", "nodes: expected at least 1, not 0"),
        (f"{TRAIN} --seed -1", "seed: expected at least 0, not -1"),
        (f"{TRAIN} --seed 1000000000", "seed: expected at most 999999999"),
        (f"{TRAIN} --time-limit nan", "time_limit: expected a finite number, not nan"),
        (f"{TRAIN} --time-limit 0", "time_limit: expected more than 0, not 0.0"),
        (f"{TRAIN} --checkpoint-minutes 0", "checkpoint_minutes: expected more than 0"),
        (f"{ROUGE} --bytes 0", "bytes: expected at least 1, not 0"),
        (f"{ROUGE} --samples 0", "samples: expected at least 1, not 0"),
        (f"{ROUGE} --samples 1048577", "samples: expected at most 1048576"),
        (f"{PAIRS} --threads 1025", "threads: expected at most 1024, not 1025"),
        (f"{PAIRS} --length-penalty nan", "length_penalty: expected"),
        (f"{PAIRS} --feature a=b", "feature: expected a name without blanks, '='"),
        ("rerank absent --feature a|b", "feature: expected a name without blanks"),
        (f"{TARGET} --length-penalty 1", "apply to an n-best list: name it with"),
        (f"{TARGET} --feature A", "--feature and --length-penalty: apply to an n-best"),
        (
            f"{IMPORT} --languages EN fr",
            "--languages: source: expected a language code",
        ),
        ("config --tasks --model demo", "apply to one task: give --task"),
        (f"{TRANSLATE} --input absent --output typo/b", PLACE),
        ("train absent --model demo --output typo/b", PLACE),
        (f"{ROUGE} --items typo/b", PLACE),
        (f"{IMPORT.removesuffix('m')}typo/b", PLACE),
        ("results absent --scale demo --output typo/b", PLACE),
        ("export-results absent typo/b", PLACE),
        ("mirror typo/b", PLACE),
        ("train absent --model demo --output .", "name a file to write"),
        (
            "train absent --model demo --output /dev/null",
            "/dev/null: is not a plain file",
        ),
        ("train absent --model demo --output pipe", "pipe: is not a plain file"),
        (f"export-results . {'9' * 300}", f"{'9' * 80}...: File name too long"),
    ],
)
def test_numbers_names_and_places_have_bounds(
    command: str,
    message: str,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for name in ("config", "config.yaml"):
        Path(name).symlink_to(root / name)
    says(fault(command), "convs2s: error: ", message)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"pipe", "config", "config.yaml"}


full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")


@full
def test_a_standard_output_without_room_is_one_line() -> None:
    command = [sys.executable, "-m", "convs2s", "tokenize", "--language", "en"]
    with Path("/dev/full").open("wb") as output:
        done = subprocess.run(
            command, input=b"a\n", stdout=output, stderr=subprocess.PIPE, check=False
        )
    line = "convs2s: error: the output cannot be written: No space left on device\n"
    assert done.stderr.decode() == line
    assert done.returncode == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT, errno.ESTALE])
def test_a_standard_output_that_fails_is_one_line(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The system names no file, as it is open already."""

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("convs2s.cli.main._drop_output", lambda: None)
    monkeypatch.setattr("convs2s.publish.card.model_card", fail)
    message = fault("card model.safetensors")
    says(message, f"error: the output cannot be written: {os.strerror(number)}")


@full
def test_a_device_without_room_is_one_line(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    text = tmp_path / "text"
    text.write_text("the man\n")
    options = "--output /dev/full --threads 1 --device cpu"
    message = fault(f"translate {model} --input {text} {options}")
    says(message, "/dev/full: cannot be written: No space left on device")


def as_reader(*command: str) -> list[str]:
    """Return a command as one whom file permissions bind, also where root runs the tests."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing be written in a folder and those below it, by whom file permissions bind."""
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    files = [
        path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
    ]
    before = {path: path.stat().st_mode for path in (*folders, *files)}
    for path, mode in before.items():
        path.chmod(mode & 0o555)
    try:
        yield
    finally:
        for path, mode in before.items():
            path.chmod(mode)


@READS_PROC
def test_where_one_may_read_alone_each_command_says_so_in_one_line(
    root: Path, tmp_path: Path
) -> None:
    folder = check_out(root, tmp_path).folder
    models = folder / "tiny/models/m"
    task = tiny.prepare(folder / "tiny")
    train(tiny.job(task, models / "seed1/model.safetensors"))
    settings = models / "settings.json"
    settings.write_text(json.dumps(training_settings(tiny.settings())))
    (models / "seed2").mkdir()
    begin = f"convs2s train tiny --settings {settings} --device cpu --output {models}"
    snakemake = f"{folder}/.snakemake: cannot be written: Permission denied"
    rows = {
        f"{begin}/seed2/model.safetensors": f"{models}/seed2/state",
        "convs2s remove-states tiny --yes": "cannot be removed: Permission denied",
        "snakemake --cores 1": snakemake,
    }
    with read_only(folder):
        for words, said in rows.items():
            command = as_reader(sys.executable, "-m", *words.split())
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 1, done.stderr
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            assert len(errors) == 1, done.stderr
            says(errors[0], said, "Permission denied")
