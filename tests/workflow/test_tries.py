"""Snakemake starts a training again for as long as it makes progress, also in a module."""

import os
from pathlib import Path

import pytest

from tests.support.checkout import Checkout
from tests.support.cluster import MODEL, training
from tests.support.deployment import outer_workflow

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


@pytest.mark.parametrize("names", ["", "*", "translation_*"])
def test_tries_are_counted_by_progress(root: Path, tmp_path: Path, names: str) -> None:
    inner = training(root, tmp_path)
    inner.write("stand_in/sitecustomize.py", TRAINING)
    checkout, rule = inner, names.replace("*", "") + "train_model"
    if names:
        source = f'"{inner.folder}/workflow/Snakefile"'
        checkout = outer_workflow(tmp_path / "outer", source, "{device: cpu}", names=names)
        (inner / "results").rename(checkout / "results")
    path = {**os.environ, "PYTHONPATH": str(inner / "stand_in")}
    settings = rule.replace("train_model", "write_model_settings")
    command = f"snakemake --cores 1 --retries 2 --allowed-rules {rule} {settings} -- {MODEL}"
    done = Checkout(checkout.folder).shell(command, path)
    assert done.code == 1
    starts = (checkout / MODEL).with_name("starts").read_text().splitlines()
    assert len(starts) == 4 + 3, done.said
