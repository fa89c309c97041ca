"""A user's own language pair, from files to a score: docs/own_language_pair.md, line by line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import own_pair
from tests.support.checkout import Checkout, Done
from tests.workflow.own_tables import write_paper

TASK = "results/mine_en_nl"
MODEL = f"{TASK}/models/small_plateau"
RUN = f"{MODEL}/seed1"
TUNED = f"{RUN}/valid.beam5_en_de.length_penalty"
RESCORED = (
    "beam5.rescored-by-small_plateau-seed2",
    "beam5_en_de.rescored-by-small_plateau-ensemble2",
)

# Text of the same task without a validation file, with BPE codes of each side, and with test text
# in the training text, from which it is removed again.
HELD_OUT = """\
description: validation held out, codes of each side
languages: {source: en, target: nl}
corpus:
  train:
    - {source: data/mine/train.en, target: data/mine/train.nl}
    - {source: data/mine/test.en, target: data/mine/test.nl}
  tests:
    test: [{source: data/mine/test.en, target: data/mine/test.nl}]
hold_out: {every: 50}
clean: {remove_overlap: true}
vocabulary: {kind: bpe, merges: 50, joint: false}
"""


@pytest.fixture(scope="module")
def further(
    root: Path,
    first_run: tuple[Checkout, Done],
    tmp_path_factory: pytest.TempPathFactory,
) -> Checkout:
    """The page's further results, its word task and a held-out one, all made by one command."""
    original, done = first_run
    done.succeeded()
    checkout = original.copy(tmp_path_factory.mktemp("further"))
    checkout.write("config/tasks/mine_held_out.yaml", HELD_OUT)
    typed = [
        line.split()[1] for line in own_pair.commands(root) if "/small_plateau/" in line
    ]
    targets = [target for target in typed if target.startswith(MODEL)]
    targets += ["results/mine_en_nl_word/bleu.txt", f"{TUNED}.svg"]
    scored = (*RESCORED, "beam5_en_de")
    targets += [f"{RUN}/test.{name}.bleu.json" for name in scored]
    targets += [f"{RUN}/test.table3_beam1.cpu.speed.json"]
    stores = (f"dataset/{split}.arrow" for split in ("train", "valid"))
    targets += [f"results/mine_held_out/{store}" for store in stores]
    targets += ["results/mine_held_out/dataset/counts.txt"]
    done = checkout.snakemake("--keep-going", *targets).succeeded()
    # Seed 2 and the word model; seed 1 was there.
    assert done.planned["train_model"] == 2
    return checkout


def read(checkout: Checkout, path: str) -> Any:
    return json.loads((checkout / path).read_text("utf-8"))


def test_first_command_ends_with_a_score(first_run: tuple[Checkout, Done]) -> None:
    checkout, done = first_run
    done.succeeded()
    assert not done.errors
    headline = (checkout / f"{TASK}/bleu.txt").read_text("utf-8")
    assert "test: 20 lines" in headline
    assert "detokenized BLEU = " in headline
    assert "tok:13a" in headline
    assert read(checkout, f"{TASK}/bleu.json")["tests"]["test"]["lines"] == 20


def test_everything_that_the_page_lists_is_there(root: Path, further: Checkout) -> None:
    page = (root / own_pair.PAGE).read_text("utf-8")
    listed = re.search(r"## 4.*?\n\n(\|.*?\n)\n", page, re.DOTALL)
    assert listed
    cells = [row.split("|")[1] for row in listed[1].splitlines()[2:]]
    names = re.findall(r"`([^`]+)`", "".join(cells))
    assert len(names) == 8
    # Made by commands of their own.
    made = {*names} - {"examples.txt", "corpus/counts.txt"}
    assert [name for name in made if not (further / TASK / name).is_file()] == []
    for name in ("curve", "test.beam5.attention1"):
        assert "<svg" in (further / f"{RUN}/{name}.svg").read_text("utf-8")
        assert (further / f"{RUN}/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_second_command_and_translate(root: Path, finished: Checkout) -> None:
    first, examples, translate = own_pair.commands(root)[:3]
    assert finished.typed(first).nothing_to_do
    finished.shell(f"{examples} && {translate} > out.txt").succeeded()
    examples_text = (finished / f"{TASK}/examples.txt").read_text("utf-8")
    assert examples_text.count("  translation  ") == 5
    # By hand as in the workflow: the model file knows preparation, vocabulary and codes.
    by_hand = (finished / "out.txt").read_text("utf-8")
    assert by_hand == (finished / f"{RUN}/test.beam5.txt").read_text("utf-8")


def test_ensemble_of_two_seeds_and_times(further: Checkout) -> None:
    score = read(further, f"{MODEL}/ensemble2/test.beam5.bleu.json")
    assert score["manifest"]["run"] == "ensemble2"
    seeds = (further / f"{MODEL}/seed{seed}/model.safetensors" for seed in (1, 2))
    assert len({seed.read_bytes() for seed in seeds}) == 2
    timing = read(further, f"{RUN}/test.table3_beam1.cpu.speed.json")
    assert timing["lines"] == 20
    assert timing["seconds"]["score"] > 0
    assert timing["manifest"]["decoding"]["batch_sentences"] == 128


def test_the_length_penalty_is_tuned_and_used(further: Checkout) -> None:
    tuned = read(further, f"{TUNED}.json")
    assert (tuned["test_set"], tuned["run"], tuned["lines"]) == ("valid", "seed1", 20)
    rows = (further / f"{TUNED}.tsv").read_text("utf-8").splitlines()[1:]
    curve = {float(row.split("\t")[0]): float(row.split("\t")[1]) for row in rows}
    assert curve[tuned["length_penalty"]] == max(curve.values())
    scored = read(further, f"{RUN}/test.beam5_en_de.bleu.json")
    decoding = scored["manifest"]["decoding"]
    assert decoding["length_penalty"] == tuned["length_penalty"]


@pytest.mark.parametrize("name", RESCORED)
def test_another_model_rescores(further: Checkout, name: str) -> None:
    bleu = read(further, f"{RUN}/test.{name}.bleu.json")["bleu"]
    scores = {choice: one["tokenized"]["score"] for choice, one in bleu.items()}
    assert scores["oracle"] >= max(scores["first"], scores["average"])
    text = (further / f"{RUN}/test.{name}.txt").read_text("utf-8")
    assert text.count("\n") == 20
    # The list's own choice is the decoding's: the same words have the same score.
    decoded = f"{RUN}/test.{name.split('.')[0]}.bleu.json"
    assert read(further, decoded)["bleu"] == bleu["first"]


def test_words_are_aligned_and_replaced(further: Checkout) -> None:
    folder = "results/mine_en_nl_word"
    assert not (further / f"{folder}/corpus").exists()  # the text is mine_en_nl's
    table = (further / f"{TASK}/alignment/dictionary.tsv").read_text("utf-8")
    entries = dict(line.split("\t")[:2] for line in table.splitlines()[1:])
    known = {"dog": "hond", "tree": "boom", "red": "rode", "sees": "ziet"}
    assert known.items() <= entries.items()
    scores = read(further, f"{folder}/bleu.json")["tests"]["test"]["runs"]["seed1"]
    counts = scores["unknown_words"]
    assert counts["dictionary"] > 0
    assert counts["total"] == counts["dictionary"] + counts["copied"]
    translations = further / f"{folder}/models/small_plateau/seed1/test.beam5.jsonl"
    rows = map(json.loads, translations.read_text("utf-8").splitlines())
    assert sum(len(row["replacements"]) for row in rows) == counts["total"]


def test_held_out_validation_and_codes_of_each_side(further: Checkout) -> None:
    folder = "results/mine_held_out"
    for split, lines in (("train", 314), ("valid", 6)):
        assert read(further, f"{folder}/corpus/clean/{split}.json")["read"] == lines
    english, dutch = (further / f"{folder}/vocabulary/codes.{x}" for x in ("en", "nl"))
    assert english.read_text("utf-8") != dutch.read_text("utf-8")
    assert not (further / f"{folder}/vocabulary/codes").exists()


def test_held_out_and_test_lines_are_removed_from_training_text(
    further: Checkout,
) -> None:
    folder = "results/mine_held_out"
    dropped = read(further, f"{folder}/corpus/clean/train.json")["dropped"]["overlap"]
    assert 20 <= dropped < 40  # the test set's 20, and what is equal by chance
    counts = read(further, f"{folder}/dataset/counts.json")
    none = {"both": 0, "source": 0, "target": 0}
    sets = {"valid": {"pairs": 6, **none}, "test": {"pairs": 20, **none}}
    assert counts["overlap"] == {"training": 0, "sets": sets}
    assert counts["unknown"].keys() == {"train", "valid", "test"}
    # Where nothing is removed, it is counted: what is equal by chance.
    text = (further / f"{TASK}/dataset/counts.txt").read_text("utf-8")
    assert "Tokens that are not in the vocabulary" in text
    log = (further / "results/logs/mine_en_nl/count_dataset.log").read_text("utf-8")
    assert "train: 0.0% of the source and 0.0% of the target tokens are unknown" in log


FIGURE_SCALE = """\
description: figure 3 from the model of one's own language pair
results_dir: results
downloads_dir: results/downloads
tasks: {wmt14_en_de_bpe80k: mine_en_nl}
models: {attention_plot: small_plateau}
tests: {newstest2014: test}
example_line: 10
"""
FIGURE = "results/paper/figure3.svg"


def test_figure_3_shows_a_line_of_the_test_set(finished: Checkout) -> None:
    finished.write("config/scales/figure.yaml", FIGURE_SCALE)
    done = finished.snakemake("--config", "scale=figure", "--", FIGURE).succeeded()
    assert "train_model" not in done.planned
    lines = (finished / "data/mine/test.en").read_text("utf-8").splitlines()
    assert read(finished, f"{RUN}/test.beam5.example.json")["source"] == lines[9]
    assert (finished / FIGURE).read_text("utf-8").startswith("<svg")


@pytest.mark.slow
def test_snakemakes_report_shows_the_plots_and_no_password(further: Checkout) -> None:
    write_paper(further)  # a few tables: each takes a second
    with (further / "config.local.yaml").open("a") as options:
        options.write("mirrors: ['https://me:secret@host.invalid/m?token=secret']\n")
    pages = ["report", "figures", "evaluate"]
    tasks = ["--config", "tasks=[mine_en_nl]"]
    done = further.snakemake(*tasks, "--", *pages).succeeded()
    assert "train_model" not in done.planned
    further.snakemake(*pages, "--report", "results/report.html", *tasks).succeeded()
    files = (path for path in further.folder.rglob("*") if path.is_file())
    told = [path.name for path in files if b"secret" in path.read_bytes()]
    assert told == ["config.local.yaml"]
    report = (further / "results/report.html").read_text("utf-8")
    plots = [f"{RUN}/{name}.svg" for name in ("curve", "test.beam5.attention1")]
    pages = ["results/shown/paper.table1.html", f"{TASK}/bleu.html"]
    missing = [
        name for name in (*plots, *pages, "learning curve") if name not in report
    ]
    assert missing == []
