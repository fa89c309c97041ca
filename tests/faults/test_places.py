"""Commands with outputs where nothing can be written, and options out of their bounds."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.identity import training_settings
from convs2s.training.run import train
from tests.faults.systems import READS_PROC, failing
from tests.support import tiny
from tests.support.checkout import Checkout
from tests.support.refusals import rows, says


def fault(command: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    return str(ended.value)


COMMANDS = f"""
translate a --beam 0 => beam: expected at least 1, not 0
translate a --beam 1025 => beam: expected at most 1024, not 1025
translate a --batch-tokens 0 => batch_tokens: expected at least 1, not 0
translate a --length-penalty nan => length_penalty: expected
translate a --unknown-penalty inf => unknown_penalty: expected a finite
translate a --threads 0 => threads: expected at least 1, not 0
translate a --workers 1025 => workers: expected at most 1024, not 1025
train a --model demo --output m --threads 1025 => threads: expected at most 1024, not 1025
train a --model demo --output m --workers -1 => workers: expected at least 0, not -1
train a --model demo --output m --nodes 0 => nodes: expected at least 1, not 0
train a --model demo --output m --seed 1000000000 => seed: expected at most 999999999
train a --model demo --output m --time-limit nan => time_limit: expected a finite number, not nan
train a --model demo --output m --time-limit 0 => time_limit: expected more than 0, not 0.0
train a --model demo --output m --checkpoint-minutes 0 => checkpoint_minutes: expected more than 0
score rouge a --reference a --bytes 0 => bytes: expected at least 1, not 0
score rouge a --reference a --samples 1048577 => samples: expected at most 1048576
score-pairs a --source a --n-best a --threads 1025 => threads: expected at most 1024, not 1025
score-pairs a --source a --n-best a --length-penalty nan => length_penalty: expected
score-pairs a --source a --n-best a --feature a=b => feature: expected a name without blanks, '='
rerank a --feature a|b => feature: expected a name without blanks
score-pairs a --source a --target a --length-penalty 1 => apply to an n-best list: name it with
score-pairs a --source a --target a --feature A => --feature and --length-penalty: apply to an n-b
import fairseq a SOURCES --output m --languages EN fr => --languages: source: expected a language
config --tasks --model demo => apply to one task: give --task
translate a --input a --output typo/b => PLACE
train a --model demo --output typo/b => PLACE
score rouge a --reference a --items typo/b => PLACE
import fairseq a SOURCES --output typo/b => PLACE
results a --scale demo --output typo/b => PLACE
export-results a typo/b => PLACE
mirror typo/b => PLACE
train a --model demo --output . => name a file to write
train a --model demo --output /dev/null => /dev/null: is not a plain file
train a --model demo --output pipe => pipe: is not a plain file
export-results . {"9" * 300} => {"9" * 80}...: File name too long
"""


def test_numbers_names_and_places_have_bounds(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for name in ("config", "config.yaml"):
        Path(name).symlink_to(root / name)
    sources = "--source-dictionary b --target-dictionary c"
    place = "typo/b: cannot be written: no folder typo: make it first"
    for command, message in rows(COMMANDS):
        said = fault(command.replace("SOURCES", sources))
        says(said, "convs2s: error: ", message.replace("PLACE", place))
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"pipe", "config", "config.yaml"}, command


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")
def test_a_standard_output_without_room_is_one_line() -> None:
    command = [sys.executable, "-m", "convs2s", "tokenize", "--language", "en"]
    with Path("/dev/full").open("wb") as output:
        done = subprocess.run(
            command, input=b"a\n", stdout=output, stderr=subprocess.PIPE, check=False
        )
    line = "convs2s: error: the output cannot be written: No space left on device\n"
    assert done.stderr.decode() == line
    assert done.returncode == 1


def test_a_standard_output_that_fails_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system names no file, as it is open already."""
    monkeypatch.setattr("convs2s.cli.main._drop_output", lambda: None)
    monkeypatch.setattr("convs2s.publish.card.model_card", failing(errno.EIO))
    message = fault("card model.safetensors")
    says(message, "error: the output cannot be written: Input/output error")


def as_reader(*command: str) -> list[str]:
    """Return a command as one whom file permissions bind, also where root runs the tests."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]


@READS_PROC
def test_where_one_may_read_alone_each_command_says_so_in_one_line(
    checkout: Checkout, task: Path
) -> None:
    folder = checkout.folder
    settings = folder / "settings.json"
    settings.write_text(json.dumps(training_settings(tiny.settings())))
    train(tiny.job(task, folder / "run/model.safetensors"))
    begin = f"convs2s train {task} --settings {settings} --device cpu"
    commands = {
        f"{begin} --output {folder}/model": f"{folder}/state",
        "convs2s remove-states run --yes": "cannot be removed: Permission denied",
        "snakemake --cores 1": f"{folder}/.snakemake",
    }
    written = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in written:
        path.chmod(0o555)
    try:
        for words, said in commands.items():
            command = as_reader(sys.executable, "-m", *words.split())
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 1, done.stderr
            errors = [line for line in done.stderr.splitlines() if "error: " in line]
            assert len(errors) == 1, done.stderr
            says(errors[0], said, "Permission denied")
    finally:
        for path in written:
            path.chmod(0o755)
