"""Results in a storage that a plugin of Snakemake's reads and writes, as docs/cloud.md types it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.checkout import Checkout
from tests.support.processes import wait_for
from tests.workflow.changes import empty_records, override

PAGE = "docs/cloud.md"
DEMO = "results/demo_en_fr/bleu.txt"
OWN = "results/mine_en_nl/bleu.txt"
RUN = "results/mine_en_nl/models/small_plateau/seed2"
SCORE = f"{RUN}/test.beam5.bleu.json"


def options(root: Path, provider: str, place: str, **stated: str) -> list[str]:
    """The options by which the page names a storage, with a test's values in place of its own."""
    page = (root / PAGE).read_text("utf-8")
    (found,) = re.findall(rf"^ +snakemake demo (.*{provider} .*)$", page, re.MULTILINE)
    words = found.split()
    values = {"--default-storage-prefix": place, **stated}
    return [values.get(before, word) for before, word in pairwise(["", *words])]


@pytest.fixture
def folder(root: Path, tmp_path: Path, finished: Checkout) -> list[str]:
    """The options for a folder elsewhere as the storage, to which all moves from the checkout."""
    pytest.importorskip("snakemake_storage_plugin_fs")
    if not shutil.which("rsync"):
        pytest.skip("the plugin fs copies by rsync, which is not here")
    store = tmp_path / "store"
    store.mkdir()
    for name in ("data", "results"):
        shutil.move(finished / name, store / name)
    return options(root, "fs", str(store))


@pytest.mark.slow
def test_a_killed_training_goes_on_and_all_of_it_is_in_the_storage(
    folder: list[str], finished: Checkout, tmp_path: Path
) -> None:
    """A second training, with more epochs than a kill waits for, on text in the storage."""
    store = tmp_path / "store"
    override(finished, "models", "small_plateau", training={"maximum_epochs": 20})
    # It is made again, for more epochs.
    (store / RUN).with_name("settings.json").unlink()
    made = {"write_model_settings", "train_model", "decode_test_set", "evaluate_bleu"}
    planned = finished.snakemake("-n", SCORE, *folder).planned
    assert planned == dict.fromkeys(made, 1)
    state = f"storage/**/{RUN}/state/*/last.safetensors"
    with subprocess.Popen(
        [sys.executable, "-m", "snakemake", SCORE, *folder],
        cwd=finished.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        wait_for(lambda: any((finished / ".snakemake").glob(state)))
        os.killpg(process.pid, signal.SIGKILL)
    assert not (store / RUN / "model.safetensors").exists()
    finished.snakemake(SCORE, *folder).succeeded()
    log = store / "results/logs/mine_en_nl/small_plateau/seed2/train.log"
    assert "resuming in epoch" in log.read_text("utf-8")
    assert (store / SCORE).is_file()
    assert not (finished / "results").exists()
    # What another machine has stored since is read, whatever was noted of the copy here.
    assert finished.snakemake(SCORE, *folder).nothing_to_do
    report = "results/mine_en_nl/dataset/train.json"
    with (store / report).open("a", encoding="utf-8") as stored:
        stored.write("\n")
    done = finished.snakemake(report.replace("train.json", "counts.txt"), *folder)
    assert (done.code, done.planned) == (0, {"count_dataset": 1}), done.said


def test_a_change_is_seen_by_the_notes_here_and_outputs_without_them_are_named(
    folder: list[str], finished: Checkout
) -> None:
    command = ["-n", OWN, *folder]
    done = finished.snakemake(*command)
    assert done.nothing_to_do, done.said
    assert f"{OWN} and 17 other outputs: no note of what they were" in done.said
    finished.snakemake("--touch", *command[1:]).succeeded()
    empty_records(finished)
    done = finished.snakemake(*command)
    assert done.nothing_to_do
    assert "no note" not in done.said
    override(finished, "decodings", "beam5", beam=2)
    made = {"decode_test_set", "evaluate_bleu", "summarize_runs"}
    assert finished.snakemake(*command).planned == dict.fromkeys(made, 1)


@pytest.mark.slow
def test_the_demo_runs_in_a_bucket(
    root: Path, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("snakemake_storage_plugin_s3")
    moto = pytest.importorskip("moto.server")
    for key in ("ACCESS_KEY", "SECRET_KEY"):
        monkeypatch.setenv(f"SNAKEMAKE_STORAGE_S3_{key}", "testing")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        stated = {"--storage-s3-endpoint-url": address}
        bucket = options(root, "s3", "s3://convs2s-demo", **stated)
        checkout.snakemake(DEMO, *bucket).succeeded()
        assert checkout.snakemake(DEMO, *bucket).nothing_to_do
    finally:
        server.stop()
