"""The preparation of WMT'14 English-French from the mirror's archives, in any number of shards."""

import json
from pathlib import Path

import pytest

from convs2s.files import read_line_pairs, sha256
from convs2s.text.corpus_filter import REASONS
from tests.support.checkout import Checkout

SPLITS = ("train", "valid")
CORPUS = "results/scales/mirror/wmt14_en_fr"
RESULTS = [
    "corpus/counts.txt",
    *(f"corpus/words/{language}.tsv.zst" for language in ("en", "fr")),
    *(f"corpus/raw/valid.{language}.zst" for language in ("en", "fr")),
    *(f"corpus/clean/{split}.{x}" for split in SPLITS for x in ("en.zst", "fr.zst", "json")),
    *(f"dataset/{split}.{x}" for split in SPLITS for x in ("arrow", "json")),
    *(f"vocabulary/{name}" for name in ("codes", "en.tsv", "fr.tsv")),
]
"""What stays of a preparation; everything in between is removed."""


def prepare(checkout: Checkout, shared: Path, shards: int) -> Path:
    """Run the preparation, with few merges as learning them is not what is looked at."""
    link = checkout.folder.parent / "shared"
    if not link.exists():
        link.symlink_to(shared)
    few = {"wmt14_en_fr": {"vocabulary": {"merges": 500}}}
    scale = {"scale": "mirror", "mirrors": ["../shared/mirror"]}
    checkout.configure({**scale, "shards": shards, "overrides": {"tasks": few}})
    targets = [f"{CORPUS}/dataset/{split}.arrow" for split in SPLITS]
    done = checkout.snakemake(*targets, f"{CORPUS}/corpus/counts.txt")
    assert done.code == 0, done.said
    return checkout / CORPUS


@pytest.mark.slow
def test_planted_pairs_are_dropped_and_counted(checkout: Checkout, shared: Path) -> None:
    folder = prepare(checkout, shared, shards=2)
    reports = [
        json.loads((folder / f"corpus/clean/{split}.json").read_text("utf-8")) for split in SPLITS
    ]
    dropped = {name: sum(each["dropped"][name] for each in reports) for name in REASONS}
    assert dropped["too_long"] == 60
    assert dropped["ratio"] >= 400
    assert dropped["empty"] >= 2
    assert sum(report["read"] for report in reports) == 50_000 + 20_462 + 20_000 + 5_000 + 29_000
    english, french = (folder / f"corpus/clean/train.{language}.zst" for language in ("en", "fr"))
    lengths = [
        sorted(len(side.split()) for side in pair) for pair in read_line_pairs(english, french)
    ]
    assert len(lengths) == reports[0]["kept"]
    assert all(few > 0 and most <= 175 and most <= 1.5 * few for few, most in lengths)
    table = (folder / "corpus/counts.txt").read_text("utf-8")
    assert table.startswith("STAND-IN DATA: ")
    assert "The paper trains on 35,500,000 pairs." in table


@pytest.mark.slow
def test_1_3_and_16_shards_give_the_same_bytes(
    checkout: Checkout, shared: Path, tmp_path: Path
) -> None:
    results = []
    for shards in (1, 3, 16):
        copy = checkout.copy(tmp_path / str(shards))
        prepare(copy, shared, shards)
        results.append({name: sha256(copy / name) for name in copy.files(CORPUS)})
    names = {name.removeprefix(f"{CORPUS}/") for name in results[0]}
    assert names == set(RESULTS)
    assert results[0] == results[1] == results[2]
