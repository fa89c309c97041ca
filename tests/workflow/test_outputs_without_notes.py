"""Outputs of which nobody noted what they were made from, and downloads, after a power cut."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.checkout import Checkout, Done
from tests.support.mirror import DEVICE, RESULTS, add_mirror

BLEU = "results/mine_en_nl/bleu.txt"
RUN = "results/mine_en_nl/models/small_plateau/seed1"
FETCHED = "raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/train.en.gz"
DOWNLOAD = f"{RESULTS}/downloads/{FETCHED}"


def remove(files: Iterable[Path]) -> None:
    found = [*files]
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
    assert unnoted(finished.snakemake("-n", BLEU)) == []
    remove((finished / "results").rglob(".*.made"))
    remove((finished / ".snakemake/metadata").iterdir())
    options = finished / "config.local.yaml"
    before = options.read_text("utf-8")
    more = before.replace("maximum_epochs: 2", "maximum_epochs: 3")
    assert more != before
    options.write_text(more, "utf-8")
    for words in (["-n"], [], ["--touch", "--dry-run"]):
        done = finished.snakemake(*words, BLEU)
        assert done.nothing_to_do, done.said
        assert unnoted(done) == [f"{BLEU} and 17 other outputs"]
    options.write_text(before, "utf-8")
    done = finished.snakemake("--touch", BLEU).succeeded()
    assert unnoted(done) == []
    assert finished.snakemake("-n", BLEU).nothing_to_do
    options.write_text(more, "utf-8")
    assert finished.snakemake("-n", BLEU).planned["train_model"] == 1


def test_one_output_without_a_note_is_named_alone(finished: Checkout) -> None:
    (finished / RUN / ".model.safetensors.made").unlink()
    assert unnoted(finished.snakemake("-n", BLEU)) == [f"{RUN}/model.safetensors"]
    assert unnoted(finished.snakemake("-n", f"{RUN}/history.jsonl")) != []
    (finished / RUN / "model.safetensors").unlink()  # is made, with a note
    assert unnoted(finished.snakemake("-n", BLEU)) == []


def test_what_is_made_has_a_note(finished: Checkout) -> None:
    remove((finished / RUN).glob(".*.made"))
    done = finished.snakemake("--forceall", BLEU).succeeded()
    assert unnoted(done) == []


def test_accepted_outputs_stay_so_without_all_of_snakemakes_records(
    finished: Checkout,
) -> None:
    options = finished / "config.local.yaml"
    text = options.read_text("utf-8")
    options.write_text(text.replace("maximum_epochs: 2", "maximum_epochs: 3"), "utf-8")
    assert finished.snakemake("-n", BLEU).planned["train_model"] == 1
    finished.snakemake("--touch", BLEU).succeeded()
    remove(path for path in (finished / ".snakemake").rglob("*") if path.is_file())
    assert finished.snakemake("-n", BLEU).nothing_to_do


@pytest.fixture
def fetched(checkout: Checkout, mirror: Path) -> Checkout:
    """A folder with one download, whose records in ``.snakemake`` a power cut has emptied."""
    add_mirror(mirror, checkout).configure(DEVICE)
    checkout.snakemake(DOWNLOAD).succeeded()
    for record in (checkout / ".snakemake/metadata").iterdir():
        record.write_bytes(b"")
    assert checkout.snakemake("-n", DOWNLOAD).nothing_to_do
    return checkout


def test_a_changed_line_of_a_download_is_seen_without_snakemakes_records(
    fetched: Checkout,
) -> None:
    downloads = fetched / "config/downloads.yaml"
    before = downloads.read_text("utf-8")
    entry = re.search(rf"- url: https://{FETCHED}\n(?:  .*\n)+", before)
    assert entry
    for old, new in (
        ("sha256: .", "sha256: f"),
        ("bytes: ", "bytes: 1"),
        ("url: https:", "url: http:"),
        ("sha256: [0-9a-f]+\n *", ""),
    ):
        other = re.sub(old, new, entry[0])
        assert other != entry[0]
        downloads.write_text(before.replace(entry[0], other), "utf-8")
        done = fetched.snakemake("-n", DOWNLOAD)
        assert done.planned == {"download_file": 1}, done.said
    fetched.snakemake(DOWNLOAD).succeeded()
    assert fetched.snakemake("-n", DOWNLOAD).nothing_to_do


def test_a_download_that_was_put_there_stays_and_is_named(fetched: Checkout) -> None:
    (fetched / DOWNLOAD).with_name(".train.en.gz.made").unlink()
    done = fetched.snakemake("-n", DOWNLOAD)
    assert done.nothing_to_do
    assert unnoted(done) == [f"{DOWNLOAD} and 1 other output"]  # the mirror itself
