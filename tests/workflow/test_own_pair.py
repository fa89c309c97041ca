"""A user's own language pair, from files to a score: docs/own_language_pair.md, line by line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from snakemake.utils import available_cpu_count

from tests.support import own_pair
from tests.support.checkout import Checkout, Done
from tests.support.refusals import says
from tests.workflow.own_tables import write_paper

TASK = "results/mine_en_nl"
MODEL = f"{TASK}/models/small_plateau"
RUN = f"{MODEL}/seed1"
WORDS = "results/mine_en_nl_word"
HELD_OUT = "results/mine_held_out"
TUNED = f"{RUN}/valid.beam5_en_de.length_penalty"
DECODED = f"{RUN}/test.beam5_en_de"
RESCORED = f"{DECODED}.rescored-by-small_plateau-ensemble2"

# Text of the same task without a validation file, with BPE codes of each side, and with test text
# in the training text, from which it is removed again.
HELD_OUT_TASK = """\
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

FURTHER = f"""
{MODEL}/ensemble2/test.beam5.bleu.json {RUN}/curve.svg {RUN}/test.beam5.attention1.svg
{RUN}/test.table3_beam1.cpu.speed.json {TUNED}.svg {RESCORED}.bleu.json {DECODED}.bleu.json
{TASK}/dataset/counts.txt {WORDS}/bleu.txt
{HELD_OUT}/dataset/train.arrow {HELD_OUT}/dataset/counts.txt
"""


@pytest.fixture(scope="module")
def further(
    first_run: tuple[Checkout, Done], tmp_path_factory: pytest.TempPathFactory
) -> Checkout:
    """The page's further results, its word task and a held-out one, all made by one command."""
    checkout = first_run[0].copy(tmp_path_factory.mktemp("further"))
    checkout.write("config/tasks/mine_held_out.yaml", HELD_OUT_TASK)
    done = checkout.snakemake("--keep-going", *FURTHER.split()).succeeded()
    # Seed 2 and the word model; seed 1 was there.
    assert done.planned["train_model"] == 2
    return checkout


def test_first_command_ends_with_a_score(first_run: tuple[Checkout, Done]) -> None:
    checkout, done = first_run
    done.succeeded()
    assert not done.errors
    assert f"\nProvided cores: {available_cpu_count()}" in done.said
    headline = checkout.read(f"{TASK}/bleu.txt")
    says(headline, "test: 20 lines", "detokenized BLEU = ", "tok:13a")
    assert checkout.json(f"{TASK}/bleu.json")["tests"]["test"]["lines"] == 20


def test_second_command_and_translate(root: Path, finished: Checkout) -> None:
    first, examples, translate = own_pair.commands(root)[:3]
    assert finished.typed(first).nothing_to_do
    finished.shell(f"{examples} && {translate} > out.txt").succeeded()
    examples_text = finished.read(f"{TASK}/examples.txt")
    assert examples_text.count("  translation  ") == 5
    # By hand as in the workflow: the model file knows preparation, vocabulary and codes.
    by_hand = finished.read("out.txt")
    assert by_hand == finished.read(f"{RUN}/test.beam5.txt")


@pytest.mark.slow
def test_what_the_page_makes_and_lists_is_there(root: Path, further: Checkout) -> None:
    page = (root / own_pair.PAGE).read_text("utf-8")
    section = page.partition("## 4")[2].partition("## ")[0]
    typed = re.findall(r"^snakemake (\S+)", section, re.MULTILINE)
    assert len(typed) == 3
    listed = re.findall(r"`([^` ]+)`(?=[^|]* \|)", section.partition("\n\nThree")[0])
    made = [f"{TASK}/{name}" for name in listed if name != "examples.txt"]
    assert len(made) > 5
    assert [name for name in typed + made if not (further / name).is_file()] == []
    for name in ("curve", "test.beam5.attention1"):
        assert "<svg" in further.read(f"{RUN}/{name}.svg")
        assert (further / f"{RUN}/{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_an_ensemble_a_timing_a_tuned_length_penalty_and_a_list_that_another_rescores(
    further: Checkout,
) -> None:
    score = further.json(f"{MODEL}/ensemble2/test.beam5.bleu.json")
    assert score["manifest"]["run"] == "ensemble2"
    first, second = (further / f"{MODEL}/seed{n}/model.safetensors" for n in (1, 2))
    assert first.read_bytes() != second.read_bytes()
    timing = further.json(f"{RUN}/test.table3_beam1.cpu.speed.json")
    assert timing["seconds"]["score"] > 0
    tuned = further.json(f"{TUNED}.json")
    assert (tuned["test_set"], tuned["run"], tuned["lines"]) == ("valid", "seed1", 20)
    curve = dict(np.loadtxt(further / f"{TUNED}.tsv", skiprows=1, usecols=(0, 1)))
    assert curve[tuned["length_penalty"]] == max(curve.values())
    decoded = further.json(f"{DECODED}.bleu.json")
    used = decoded["manifest"]["decoding"]["length_penalty"]
    assert used == tuned["length_penalty"]
    bleu = further.json(f"{RESCORED}.bleu.json")["bleu"]
    scores = {choice: one["tokenized"]["score"] for choice, one in bleu.items()}
    assert scores["oracle"] >= max(scores["first"], scores["average"])
    # The list's own choice is the decoding's: the same words have the same score.
    assert decoded["bleu"] == bleu["first"]


@pytest.mark.slow
def test_words_are_aligned_and_replaced(further: Checkout) -> None:
    assert not (further / f"{WORDS}/corpus").exists()  # the text is mine_en_nl's
    table = further.read(f"{TASK}/alignment/dictionary.tsv")
    entries = dict(line.split("\t")[:2] for line in table.splitlines()[1:])
    known = {"dog": "hond", "tree": "boom", "red": "rode", "sees": "ziet"}
    assert known.items() <= entries.items()
    scores = further.json(f"{WORDS}/bleu.json")["tests"]["test"]["runs"]["seed1"]
    counts = scores["unknown_words"]
    assert counts["dictionary"] > 0
    assert counts["total"] == counts["dictionary"] + counts["copied"]
    translations = f"{WORDS}/models/small_plateau/seed1/test.beam5.jsonl"
    rows = map(json.loads, further.read(translations).splitlines())
    assert sum(len(row["replacements"]) for row in rows) == counts["total"]


@pytest.mark.slow
def test_held_out_and_test_lines_are_removed_from_training_text(
    further: Checkout,
) -> None:
    for split, lines in (("train", 314), ("valid", 6)):
        assert further.json(f"{HELD_OUT}/corpus/clean/{split}.json")["read"] == lines
    codes = f"{HELD_OUT}/vocabulary/codes"
    assert further.read(f"{codes}.en") != further.read(f"{codes}.nl")
    dropped = further.json(f"{HELD_OUT}/corpus/clean/train.json")["dropped"]["overlap"]
    assert 20 <= dropped < 40  # the test set's 20, and what is equal by chance
    counts = further.json(f"{HELD_OUT}/dataset/counts.json")
    none = {"both": 0, "source": 0, "target": 0}
    sets = {"valid": {"pairs": 6, **none}, "test": {"pairs": 20, **none}}
    assert counts["overlap"] == {"training": 0, "sets": sets}
    log = further.read("results/logs/mine_en_nl/count_dataset.log")
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


@pytest.mark.slow
def test_figure_3_shows_a_line_of_the_test_set(finished: Checkout) -> None:
    finished.write("config/scales/figure.yaml", FIGURE_SCALE)
    done = finished.snakemake("--config", "scale=figure", "--", FIGURE).succeeded()
    assert "train_model" not in done.planned
    lines = finished.read("data/mine/test.en").splitlines()
    assert finished.json(f"{RUN}/test.beam5.example.json")["source"] == lines[9]
    assert finished.read(FIGURE).startswith("<svg")


@pytest.mark.slow
def test_snakemakes_report_shows_the_plots_and_no_password(further: Checkout) -> None:
    write_paper(further)  # a few tables: each takes a second
    with (further / "config.local.yaml").open("a") as options:
        options.write("mirrors: ['https://me:secret@host.invalid/m?token=secret']\n")
    asked = ["report", "figures", "evaluate", "--config", "tasks=[mine_en_nl]"]
    done = further.snakemake(*asked).succeeded()
    assert "train_model" not in done.planned
    further.snakemake("--report", "results/report.html", *asked).succeeded()
    files = (path for path in further.folder.rglob("*") if path.is_file())
    told = [path.name for path in files if b"secret" in path.read_bytes()]
    assert told == ["config.local.yaml"]
    pages = ["results/shown/paper.table1.html", f"{TASK}/bleu.html", "learning curve"]
    plots = [f"{RUN}/curve.svg", f"{RUN}/test.beam5.attention1.svg"]
    says(further.read("results/report.html"), *pages, *plots)
