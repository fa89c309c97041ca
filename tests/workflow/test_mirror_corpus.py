"""The preparation of the paper's corpora from the mirror's archives, at once or in parts."""

import json
from pathlib import Path

import pytest

from convs2s.files.checksums import sha256
from convs2s.files.text import read_line_pairs
from mirror.sentences import ODD_CHARACTERS, PLANTED, TRAINING_PAIRS
from tests.support.checkout import Checkout
from tests.support.mirror import DEVICE, RESULTS, add_mirror

SPLITS = ("train", "valid")
CORPUS = f"{RESULTS}/wmt14_en_fr"
SIDES = ("source", "target")
KEPT = [
    "corpus/counts.txt",
    *(f"corpus/words/{side}.tsv.zst" for side in ("source", "target")),
    *(f"corpus/raw/valid.{side}.zst" for side in ("source", "target")),
    *(
        f"corpus/clean/{split}.{x}"
        for split in SPLITS
        for x in ("source.zst", "target.zst", "json")
    ),
    *(f"dataset/{split}.{x}" for split in SPLITS for x in ("arrow", "json")),
    *(f"vocabulary/{name}" for name in ("codes", "en.tsv", "fr.tsv")),
]
"""What stays of a preparation; everything in between is removed."""

CORPORA = {
    "wmt14_en_fr": ["europarl", "commoncrawl", "un", "news_commentary", "giga"],
    "wmt14_en_de": ["europarl", "commoncrawl", "news_commentary"],
    "wmt14_en_de_stanford": ["europarl", "commoncrawl", "news_commentary"],
    "gigaword": ["gigaword"],
}
"""Task -> what its training text is made of, in the mirror."""

RATIO = {"wmt14_en_fr", "wmt14_en_de"}
"""Tasks whose cleaning looks at the ratio, and whose text has the faults."""


def test_every_corpus_is_extracted_and_cleaned(
    checkout: Checkout, mirror: Path
) -> None:
    add_mirror(mirror, checkout).configure(DEVICE)
    checkout.snakemake(
        *(f"{RESULTS}/{task}/corpus/counts.txt" for task in CORPORA)
    ).succeeded()
    for task, names in CORPORA.items():
        folder = checkout / RESULTS / task
        table = (folder / "corpus/counts.txt").read_text("utf-8")
        assert table.startswith("STAND-IN DATA: ")
        splits = [split for split in SPLITS if task != "gigaword" or split == "train"]
        reports = [
            json.loads((folder / f"corpus/clean/{split}.json").read_text("utf-8"))
            for split in splits
        ]
        faults = sum(PLANTED.values()) + len(ODD_CHARACTERS) if task in RATIO else 0
        pairs = sum(TRAINING_PAIRS[name] for name in names)
        assert sum(report["read"] for report in reports) == pairs + faults, task
        dropped = {
            name: sum(each["dropped"][name] for each in reports) for name in PLANTED
        }
        if task in RATIO:
            assert dropped.pop("ratio") >= PLANTED["ratio"]
            assert dropped == {name: PLANTED[name] for name in dropped}
        else:
            assert not any(dropped.values()), task
    counts = (checkout / CORPUS / "corpus/counts.txt").read_text("utf-8")
    assert "The paper trains on 35,500,000 pairs." in counts


def prepare(checkout: Checkout, mirror: Path, parts: int) -> Path:
    """Run the preparation, with few merges as learning them is not what is looked at."""
    above = {} if parts == 1 else {"scatter_above": 0}
    few = {"wmt14_en_fr": {"vocabulary": {"merges": 500}}}
    add_mirror(mirror, checkout)
    checkout.configure({**DEVICE, **above, "overrides": {"tasks": few}})
    targets = [f"{CORPUS}/dataset/{split}.arrow" for split in SPLITS]
    scattered = ["--set-scatter", f"parts={parts}", "--"]
    done = checkout.snakemake(
        *scattered, *targets, f"{CORPUS}/corpus/counts.txt"
    ).succeeded()
    assert done.planned.get("tokenize_and_filter_part", 1) == parts
    return checkout / CORPUS


@pytest.mark.slow
def test_at_once_and_in_3_or_16_parts_it_has_the_same_bytes(
    checkout: Checkout, mirror: Path, tmp_path: Path
) -> None:
    results = []
    for parts in (1, 3, 16):
        copy = checkout.copy(tmp_path / str(parts))
        folder = prepare(copy, mirror, parts)
        results.append({name: sha256(copy / name) for name in copy.files(CORPUS)})
        english, french = (folder / f"corpus/clean/train.{x}.zst" for x in SIDES)
        pairs = read_line_pairs(english, french)
        lengths = [sorted(len(side.split()) for side in pair) for pair in pairs]
        assert all(
            few > 0 and most <= 175 and most <= 1.5 * few for few, most in lengths
        )
    names = {name.removeprefix(f"{CORPUS}/") for name in results[0]}
    assert names == set(KEPT)
    assert results[0] == results[1] == results[2]
