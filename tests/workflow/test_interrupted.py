"""Ctrl-C while the workflow runs: one line that says how to go on, and no traceback."""

import os
import signal
import subprocess
import sys
from functools import partial

from convs2s.pipeline.terminal import TO_RESUME
from tests.support.checkout import Checkout
from tests.support.processes import wait_for

TARGET = "results/demo_en_fr/corpus/clean/valid.source.zst"
PATIENCE = 300


def test_ctrl_c_says_how_to_go_on(checkout: Checkout) -> None:
    said = checkout / "said.txt"
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", TARGET],
        cwd=checkout.folder,
        stdout=said.open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        # Where tests run in the background of a shell, what they start would ignore it.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(lambda: "] extract_corpus" in said.read_text() or process.poll() is not None)
    assert process.poll() is None, said.read_text()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE) == 1
    text = said.read_text()
    assert TO_RESUME in text
    for wall in ("Traceback", "CalledProcessError", "Error in rule", "KeyboardInterrupt"):
        assert wall not in text
    assert not (checkout / TARGET).exists()
