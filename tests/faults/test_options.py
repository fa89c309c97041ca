"""Options of commands: the bounds of the configuration; outputs where nothing can be written."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.cli.main import main

TRANSLATE = "translate absent.safetensors"
TRAIN = "train absent --model demo --output model.safetensors"
ROUGE = "score rouge absent --reference absent"
PAIRS = "score-pairs absent.safetensors --source absent --n-best absent"
TARGET = "score-pairs absent.safetensors --source absent --target absent"
IMPORT = "import fairseq a --source-dictionary b --target-dictionary c --output m"
NO_FOLDER = "typo/b: cannot be written: no folder typo: make it first"


def fault(command: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    return str(ended.value).removeprefix("convs2s: error: ")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{TRANSLATE} --beam 0", "options: beam: expected at least 1, not 0"),
        (
            f"{TRANSLATE} --beam 100000",
            "options: beam: expected at most 1024, not 100000",
        ),
        (
            f"{TRANSLATE} --batch-tokens 0",
            "options: batch_tokens: expected at least 1, not 0",
        ),
        (f"{TRANSLATE} --length-penalty nan", "options: length_penalty: expected"),
        (
            f"{TRANSLATE} --unknown-penalty inf",
            "options: unknown_penalty: expected a finite",
        ),
        (f"{TRANSLATE} --threads 0", "options: threads: expected at least 1, not 0"),
        (
            f"{TRANSLATE} --threads 100000",
            "options: threads: expected at most 1024, not 100000",
        ),
        (
            f"{TRANSLATE} --workers 100000",
            "options: workers: expected at most 1024, not 100000",
        ),
        (
            f"{TRAIN} --threads 100000",
            "options: threads: expected at most 1024, not 100000",
        ),
        (f"{TRAIN} --workers -1", "options: workers: expected at least 0, not -1"),
        (f"{TRAIN} --nodes 0", "options: nodes: expected at least 1, not 0"),
        (f"{TRAIN} --seed -1", "options: seed: expected at least 0, not -1"),
        (
            f"{TRAIN} --seed 1000000000",
            "options: seed: expected at most 999999999, not 1000000000",
        ),
        (
            f"{TRAIN} --time-limit nan",
            "options: time_limit: expected a finite number, not nan",
        ),
        (
            f"{TRAIN} --time-limit 0",
            "options: time_limit: expected more than 0, not 0.0",
        ),
        (
            f"{TRAIN} --checkpoint-minutes 0",
            "options: checkpoint_minutes: expected more than 0",
        ),
        (f"{ROUGE} --bytes 0", "options: bytes: expected at least 1, not 0"),
        (f"{ROUGE} --samples 0", "options: samples: expected at least 1, not 0"),
        (
            f"{ROUGE} --samples 99999999",
            "options: samples: expected at most 1048576, not 99999999",
        ),
        (
            f"{PAIRS} --threads 100000",
            "options: threads: expected at most 1024, not 100000",
        ),
        (f"{PAIRS} --length-penalty nan", "options: length_penalty: expected"),
        (
            f"{PAIRS} --feature a=b",
            "options: feature: expected a name without blanks, '=' and '|'",
        ),
        (
            "rerank absent --feature a|b",
            "options: feature: expected a name without blanks",
        ),
        (
            f"{TARGET} --length-penalty 1",
            "--feature and --length-penalty: are for a list: name it",
        ),
        (
            f"{TARGET} --feature A",
            "--feature and --length-penalty: are for a list: name it with",
        ),
        (
            f"{IMPORT} --languages EN fr",
            "--languages: source: expected a language code of two or",
        ),
        (
            "config --tasks --model demo",
            "--model and --decoding apply to one task: give --task",
        ),
    ],
)
def test_numbers_and_names_have_bounds(command: str, message: str) -> None:
    assert fault(command).startswith(message)


@pytest.mark.parametrize(
    "command",
    [
        f"{TRANSLATE} --input absent --output typo/b",
        "train absent --model demo --output typo/b",
        f"{ROUGE} --items typo/b",
        f"{IMPORT.removesuffix('m')}typo/b",
        "results absent --scale demo --output typo/b",
        "export-results absent typo/b",
        "mirror typo/b",
    ],
)
def test_no_folder_is_made_of_a_typo(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fault(command) == NO_FOLDER
    assert not list(tmp_path.iterdir())


def test_a_path_that_can_be_none_is_one_line(tmp_path: Path) -> None:
    place = f"{tmp_path}/{'9' * 300}"
    message = fault(f"export-results {tmp_path} {place}")
    assert message == f"{place[:80]}...: File name too long"


def test_a_training_writes_to_no_device_and_to_no_folder(tmp_path: Path) -> None:
    assert fault(f"train absent --model demo --output {tmp_path}").endswith(
        "name a file to write"
    )
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in ("/dev/null", str(pipe)):
        message = fault(f"train absent --model demo --output {place}")
        assert message.startswith(
            f"{place}: is no plain file: a training keeps its states beside"
        )


full = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full"
)


@full
def test_a_standard_output_without_room_is_one_line() -> None:
    with Path("/dev/full").open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "convs2s", "tokenize", "--language", "en"],
            input=b"a line\n",
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
    said = done.stderr.decode()
    assert (
        said
        == "convs2s: error: the output cannot be written: No space left on device\n"
    )
    assert done.returncode == 1


@full
def test_a_device_without_room_is_one_line(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    text = tmp_path / "text"
    text.write_text("the man\n")
    command = (
        f"translate {model} --input {text} --output /dev/full --threads 1 --device cpu"
    )
    assert fault(command).startswith(
        "/dev/full: cannot be written: No space left on device"
    )
