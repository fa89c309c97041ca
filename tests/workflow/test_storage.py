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
def folder(root: Path, tmp_path: Path) -> list[str]:
    """The options for a folder elsewhere as the storage."""
    pytest.importorskip("snakemake_storage_plugin_fs")
    if not shutil.which("rsync"):
        pytest.skip("the plugin fs copies by rsync, which is not here")
    return options(root, "fs", str(tmp_path / "store"))


@pytest.mark.slow
def test_a_killed_training_goes_on_and_all_of_it_is_in_the_storage(
    folder: list[str], finished: Checkout, tmp_path: Path
) -> None:
    """A second training, with more epochs than a kill waits for, on text in the storage."""
    options = finished.options()
    options["overrides"]["models"]["small_plateau"]["training"]["maximum_epochs"] = 20
    finished.configure(options)
    # It is made again, for more epochs.
    (finished / RUN).with_name("settings.json").unlink()
    command = ["-n", SCORE, *folder]
    (tmp_path / "store").mkdir(exist_ok=True)
    for name in ("data", "results"):
        shutil.move(finished / name, tmp_path / "store" / name)
    made = {"write_model_settings", "train_model", "decode_test_set", "evaluate_bleu"}
    assert finished.snakemake(*command).planned == dict.fromkeys(made, 1)
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
    assert not (tmp_path / "store" / RUN / "model.safetensors").exists()
    finished.snakemake(SCORE, *folder).succeeded()
    log = tmp_path / "store/results/logs/mine_en_nl/small_plateau/seed2/train.log"
    assert "resuming in epoch" in log.read_text("utf-8")
    assert (tmp_path / "store" / SCORE).is_file()
    assert not (finished / "results").exists()
    # What another machine has stored since is read, whatever was noted of the copy here.
    assert finished.snakemake(SCORE, *folder).nothing_to_do
    report = "results/mine_en_nl/dataset/train.json"
    with (tmp_path / "store" / report).open("a", encoding="utf-8") as stored:
        stored.write("\n")
    done = finished.snakemake(report.replace("train.json", "counts.txt"), *folder)
    assert (done.code, done.planned) == (0, {"count_dataset": 1}), done.said


def test_a_change_is_seen_by_the_notes_here_and_outputs_without_them_are_named(
    folder: list[str], finished: Checkout, tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    for name in ("data", "results"):
        shutil.move(finished / name, tmp_path / "store" / name)
    command = ["-n", OWN, *folder]
    done = finished.snakemake(*command)
    assert done.nothing_to_do, done.said
    assert f"{OWN} and 17 other outputs: no note of what they were" in done.said
    finished.snakemake("--touch", *command[1:]).succeeded()
    for record in (finished / ".snakemake/metadata").iterdir():
        record.write_bytes(b"")
    done = finished.snakemake(*command)
    assert done.nothing_to_do
    assert "no note" not in done.said
    options = finished.options()
    options["overrides"]["decodings"]["beam5"] = {"beam": 2}
    finished.configure(options)
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
