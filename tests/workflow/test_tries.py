"""Snakemake starts a training again for as long as it makes progress."""

import os
from pathlib import Path

from tests.support.cluster import MODEL, training

# Stands for trainings, which stop early: the first four of a run save a state, later ones do not.
TRAINING = """\
import os, sys
from pathlib import Path
words = sys.orig_argv
if "convs2s" in words and "train" in words:
    run = Path(words[words.index("--output") + 1]).parent
    state = run / "state/digest/last.safetensors"
    state.parent.mkdir(parents=True, exist_ok=True)
    with (run / "starts").open("a") as stream:
        stream.write("started\\n")
    if len((run / "starts").read_text().splitlines()) <= 4:
        state.touch()
    os._exit(75)
"""


def test_tries_are_counted_by_progress(root: Path, tmp_path: Path) -> None:
    checkout = training(root, tmp_path)
    checkout.write("stand_in/sitecustomize.py", TRAINING)
    path = {**os.environ, "PYTHONPATH": str(checkout / "stand_in")}
    rules = "train_model write_model_settings"
    command = f"snakemake --cores 1 --retries 2 --allowed-rules {rules} -- {MODEL}"
    done = checkout.shell(command, path)
    assert done.code == 1
    starts = (checkout / MODEL).with_name("starts").read_text().splitlines()
    assert len(starts) == 4 + 3, done.said
