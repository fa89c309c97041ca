"""Outputs of which nobody noted what they were made from, and downloads, after a power cut."""

import re
from pathlib import Path

from tests.support.checkout import Checkout, Done
from tests.workflow.changes import empty_records, override
from tests.workflow.mirror import DEVICE, RESULTS, add_mirror

BLEU = "results/mine_en_nl/bleu.txt"
RUN = "results/mine_en_nl/models/small_plateau/seed1"
FETCHED = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.en.gz"
DOWNLOAD = f"{RESULTS}/downloads/{FETCHED}"


def remove_files(folder: Path, pattern: str) -> None:
    found = [path for path in folder.rglob(pattern) if path.is_file()]
    assert found
    for file in found:
        file.unlink()


def unnoted(done: Done) -> list[str]:
    """What is said of outputs without a note: its first words, with their number."""
    lines = re.findall(r"^warning: (.*): no note of what .*", done.said, re.M)
    assert done.said.count("snakemake --touch TARGETS") == len(lines)
    return lines


def test_outputs_without_notes_are_named_and_kept_until_they_are_accepted(
    finished: Checkout,
) -> None:
    remove_files(finished / "results", ".*.made")
    remove_files(finished / ".snakemake/metadata", "*")
    before = finished.options()
    override(finished, "models", "small_plateau", training={"maximum_epochs": 3})
    more = finished.options()
    for words in ([], ["--touch", "--dry-run"]):
        done = finished.snakemake(*words, BLEU)
        assert done.nothing_to_do, done.said
        assert unnoted(done) == [f"{BLEU} and 17 other outputs"]
    finished.configure(before)
    assert unnoted(finished.snakemake("--touch", BLEU).succeeded()) == []
    finished.configure(more)
    assert finished.snakemake("-n", BLEU).planned["train_model"] == 1
    finished.snakemake("--touch", BLEU).succeeded()
    remove_files(finished / ".snakemake", "*")
    assert finished.snakemake("-n", BLEU).nothing_to_do

    # Of one output alone.
    (finished / RUN / ".model.safetensors.made").unlink()
    assert unnoted(finished.snakemake("-n", BLEU)) == [f"{RUN}/model.safetensors"]
    (finished / RUN / "model.safetensors").unlink()  # is made, with a note
    assert unnoted(finished.snakemake("-n", BLEU)) == []


def test_a_download_is_compared_with_its_note_and_without_one_is_named(
    checkout: Checkout, mirror: Path
) -> None:
    add_mirror(mirror, checkout).configure(DEVICE)
    checkout.snakemake(DOWNLOAD).succeeded()
    empty_records(checkout)
    downloads = checkout / "config/downloads.yaml"
    before = downloads.read_text("utf-8")
    entry = re.search(rf"- url: https://{FETCHED}\n(?:  .*\n)+", before)
    assert entry
    for old, new in (("sha256: .", "sha256: f"), ("url: https:", "url: http:")):
        other = re.sub(old, new, entry[0])
        assert other != entry[0]
        downloads.write_text(before.replace(entry[0], other), "utf-8")
        done = checkout.snakemake("-n", DOWNLOAD)
        assert done.planned == {"download_file": 1}, done.said
    downloads.write_text(before, "utf-8")
    (checkout / DOWNLOAD).with_name(".train.en.gz.made").unlink()
    done = checkout.snakemake("-n", DOWNLOAD)
    assert done.nothing_to_do
    assert unnoted(done) == [f"{DOWNLOAD} and 1 other output"]  # the mirror itself
