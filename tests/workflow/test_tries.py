"""A job that dies after a change: what was made of its outputs before is still out of date."""

import os

import pytest
import yaml

from tests.support.checkout import Checkout

SCORE = "results/mine_en_nl/bleu.txt"
EPOCHS = {"maximum_epochs": 3}

# As where memory runs out: nothing of it can be seen in code or settings.
DEATH = """\
import os, sys, threading, time
def die():
    while not os.path.exists("{note}"):
        time.sleep(0.001)
    os._exit(9)
if any(word.endswith("{word}") for word in sys.orig_argv):
    threading.Thread(target=die, daemon=True).start()
"""


@pytest.mark.parametrize(
    ("rule", "word", "output"),
    [
        ("write_model_settings", ".write_model_settings.py", "settings.json"),
        pytest.param(
            "train_model", "--seed", "seed1/model.safetensors", marks=pytest.mark.slow
        ),
    ],
)
def test_the_dependents_of_a_job_that_died_are_made_again(
    finished: Checkout, rule: str, word: str, output: str
) -> None:
    options = yaml.safe_load((finished / "config.local.yaml").read_text("utf-8"))
    options["overrides"]["models"]["small"]["training"] |= EPOCHS
    finished.configure(options)
    place = f"results/mine_en_nl/models/small/{output}"
    note = "/.".join(place.rsplit("/", 1)) + ".try"
    finished.write("stand_in/sitecustomize.py", DEATH.format(word=word, note=note))
    dying = {**os.environ, "PYTHONPATH": str(finished / "stand_in")}
    failed = finished.snakemake("--retries", "0", SCORE, environment=dying)
    assert failed.code == 1
    assert f"Error in rule {rule}" in failed.said
    assert not (finished / place).exists()
    for _ in range(2):  # a plan takes nothing away
        again = finished.snakemake("--dry-run", SCORE).succeeded()
        assert again.planned[rule] == again.planned["evaluate_bleu"] == 1, again.said
    finished.snakemake(SCORE).succeeded()
    assert finished.snakemake("--dry-run", SCORE).nothing_to_do
