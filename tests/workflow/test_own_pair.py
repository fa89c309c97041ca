"""A user's own language pair, from files to a score: docs/own_language_pair.md, line by line."""

import json
import re
from pathlib import Path

import pytest

from tests.support import own_pair
from tests.support.checkout import Checkout, Done

MODEL = "results/mine_en_nl/models/small"
TUNED = f"{MODEL}/seed1/valid.beam5_en_de.length_penalty"
RESCORED = ("beam5.rescored-by-small-seed2", "beam5_en_de.rescored-by-small-ensemble2")

# Text of the same task without a validation file, and with BPE codes of each side.
HELD_OUT = """\
description: validation held out, codes of each side
languages: {source: en, target: nl}
corpus:
  train: [{source: data/mine/train.en, target: data/mine/train.nl}]
  tests:
    test: [{source: data/mine/test.en, target: data/mine/test.nl}]
hold_out: {every: 50}
vocabulary: {kind: bpe, merges: 50, joint: false}
"""


@pytest.fixture(scope="module")
def further(
    root: Path,
    first_run: tuple[Checkout, Done],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Checkout, Done]:
    """The page's further results, its word task and a held-out one, all made by one command."""
    original, done = first_run
    done.succeeded()
    checkout = original.copy(tmp_path_factory.mktemp("further"))
    checkout.write("config/tasks/mine_held_out.yaml", HELD_OUT)
    targets = [
        line.split()[1] for line in own_pair.commands(root) if "/models/small/" in line
    ]
    targets = [target for target in targets if target.startswith(MODEL)]
    targets += ["results/mine_en_nl_word/bleu.txt"]
    targets += [f"{MODEL}/seed1/test.{name}.bleu.txt" for name in RESCORED]
    targets += [f"{MODEL}/seed1/test.beam5_en_de.bleu.json", f"{TUNED}.svg"]
    targets += [f"{MODEL}/seed1/test.table3_beam1.cpu.speed.json"]
    targets += [
        f"results/mine_held_out/dataset/{split}.arrow" for split in ("train", "valid")
    ]
    return checkout, checkout.snakemake("--keep-going", *targets)


def test_first_command_ends_with_a_score(first_run: tuple[Checkout, Done]) -> None:
    checkout, done = first_run
    done.succeeded()
    assert not done.errors
    headline = (checkout / "results/mine_en_nl/bleu.txt").read_text("utf-8")
    assert "test: 20 lines" in headline
    assert "detokenized BLEU = " in headline
    assert "tok:13a" in headline
    scores = json.loads((checkout / "results/mine_en_nl/bleu.json").read_text("utf-8"))
    assert scores["tests"]["test"]["lines"] == 20


def test_everything_that_the_page_lists_is_there(
    root: Path, further: tuple[Checkout, Done]
) -> None:
    checkout, _ = further
    page = (root / own_pair.PAGE).read_text("utf-8")
    listed = re.search(r"## 4.*?\n\n(\|.*?\n)\n", page, re.DOTALL)
    assert listed
    names = [
        name
        for row in listed[1].splitlines()[2:]
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    ]
    assert len(names) == 7
    # Made by commands of their own.
    made = [name for name in names if name not in ("examples.txt", "corpus/counts.txt")]
    assert [
        n for n in made if not (checkout / f"results/mine_en_nl/{n}").is_file()
    ] == []


def test_second_command_and_translate(root: Path, finished: Checkout) -> None:
    examples, translate = own_pair.commands(root)[1:3]
    finished.shell(f"{examples} && {translate} > out.txt").succeeded()
    examples_text = (finished / "results/mine_en_nl/examples.txt").read_text("utf-8")
    assert examples_text.count("  translation  ") == 5
    # By hand as in the workflow: the model file knows preparation, vocabulary and codes.
    by_hand = (finished / "out.txt").read_text("utf-8")
    assert by_hand == (finished / f"{MODEL}/seed1/test.beam5.txt").read_text("utf-8")


def test_second_run_has_nothing_to_do(root: Path, finished: Checkout) -> None:
    assert finished.shell(own_pair.commands(root)[0]).nothing_to_do


def test_ensemble_of_two_seeds(further: tuple[Checkout, Done]) -> None:
    checkout, done = further
    result = checkout / f"{MODEL}/ensemble2/test.beam5.bleu.json"
    assert result.is_file(), done.said
    assert json.loads(result.read_text("utf-8"))["manifest"]["run"] == "ensemble2"
    models = [checkout / f"{MODEL}/seed{seed}/model.safetensors" for seed in (1, 2)]
    assert models[0].read_bytes() != models[1].read_bytes()
    # Seed 2 and the word model; seed 1 was there.
    assert done.planned["train_model"] == 2


def test_plots(further: tuple[Checkout, Done]) -> None:
    checkout, done = further
    for name in ("curve", "test.beam5.attention1"):
        assert "<svg" in (checkout / f"{MODEL}/seed1/{name}.svg").read_text("utf-8"), (
            done.said
        )
        assert (
            (checkout / f"{MODEL}/seed1/{name}.png").read_bytes().startswith(b"\x89PNG")
        )


def test_a_decoding_is_timed(further: tuple[Checkout, Done]) -> None:
    path = further[0] / f"{MODEL}/seed1/test.table3_beam1.cpu.speed.json"
    timing = json.loads(path.read_text("utf-8"))
    assert timing["lines"] == 20
    assert timing["seconds"]["score"] > 0
    assert timing["manifest"]["decoding"]["batch_sentences"] == 128


def test_the_length_penalty_is_tuned_and_used(further: tuple[Checkout, Done]) -> None:
    checkout, done = further
    assert "<svg" in (checkout / f"{TUNED}.svg").read_text("utf-8"), done.said
    tuned = json.loads((checkout / f"{TUNED}.json").read_text("utf-8"))
    assert (tuned["test_set"], tuned["run"], tuned["lines"]) == ("valid", "seed1", 20)
    rows = (checkout / f"{TUNED}.tsv").read_text("utf-8").splitlines()[1:]
    curve = {float(row.split("\t")[0]): float(row.split("\t")[1]) for row in rows}
    assert curve[tuned["length_penalty"]] == max(curve.values())
    scored = checkout / f"{MODEL}/seed1/test.beam5_en_de.bleu.json"
    decoding = json.loads(scored.read_text("utf-8"))["manifest"]["decoding"]
    assert decoding["length_penalty"] == tuned["length_penalty"]


def test_another_model_rescores(further: tuple[Checkout, Done]) -> None:
    checkout, done = further
    for name in RESCORED:
        path = checkout / f"{MODEL}/seed1/test.{name}.bleu.json"
        bleu = json.loads(path.read_text("utf-8"))["bleu"]
        tokenized = {
            choice: scores["tokenized"]["score"] for choice, scores in bleu.items()
        }
        assert tokenized["oracle"] >= max(tokenized["first"], tokenized["average"]), (
            done.said
        )
        text = path.with_name(f"test.{name}.txt").read_text("utf-8")
        assert text.count("\n") == 20
        # The list's own choice is the decoding's: the same words have the same score.
        decoded = path.with_name(f"test.{name.split('.')[0]}.bleu.json")
        assert json.loads(decoded.read_text("utf-8"))["bleu"] == bleu["first"]


def test_words_are_aligned_and_replaced(further: tuple[Checkout, Done]) -> None:
    checkout, done = further
    done.succeeded()
    folder = "results/mine_en_nl_word"
    assert not (checkout / f"{folder}/corpus").exists()  # the text is mine_en_nl's
    dictionary = (checkout / "results/mine_en_nl/alignment/dictionary.tsv").read_text(
        "utf-8"
    )
    entries = dict(line.split("\t")[:2] for line in dictionary.splitlines()[1:])
    known = {"dog": "hond", "tree": "boom", "red": "rode", "sees": "ziet"}
    assert entries | known == entries
    scores = json.loads((checkout / f"{folder}/bleu.json").read_text("utf-8"))
    counts = scores["tests"]["test"]["runs"]["seed1"]["unknown_words"]
    assert counts["total"] > 0
    assert counts["dictionary"] > 0
    assert counts["total"] == counts["dictionary"] + counts["copied"]
    translations = (
        checkout / f"{folder}/models/small/seed1/test.beam5.jsonl"
    ).read_text("utf-8")
    replaced = [json.loads(line)["replacements"] for line in translations.splitlines()]
    assert sum(map(len, replaced)) == counts["total"]
    headline = (checkout / f"{folder}/bleu.txt").read_text("utf-8")
    assert re.search(
        rf"^seed1 +{counts['total']:,} +{counts['dictionary']:,} +{counts['copied']:,} ",
        headline,
        re.MULTILINE,
    )


def test_held_out_validation_and_codes_of_each_side(
    further: tuple[Checkout, Done],
) -> None:
    checkout, done = further
    folder = "results/mine_held_out"
    counts = {
        split: json.loads(
            (checkout / f"{folder}/corpus/clean/{split}.json").read_text("utf-8")
        )
        for split in ("train", "valid")
    }
    assert {split: count["read"] for split, count in counts.items()} == {
        "train": 294,
        "valid": 6,
    }
    codes = [
        checkout / f"{folder}/vocabulary/codes.{language}" for language in ("en", "nl")
    ]
    assert codes[0].read_text("utf-8") != codes[1].read_text("utf-8"), done.said
    assert not (checkout / f"{folder}/vocabulary/codes").exists()


@pytest.mark.slow
def test_report_shows_the_plots(further: tuple[Checkout, Done]) -> None:
    checkout, _ = further
    own_pair.write_paper(checkout)  # a few tables: each takes a second
    with (checkout / "config.local.yaml").open("a") as options:
        options.write("mirrors: ['https://me:secret@host.invalid/m?token=secret']\n")
    pages = ["report", "figures", "evaluate"]
    done = checkout.snakemake(
        "--config", "tasks=[mine_en_nl]", "--", *pages
    ).succeeded()
    page = ["--report", "results/report.html", "--config", "tasks=[mine_en_nl]"]
    checkout.snakemake(*pages, *page).succeeded()
    files = (path for path in checkout.folder.rglob("*") if path.is_file())
    assert [path.name for path in files if b"secret" in path.read_bytes()] == [
        "config.local.yaml"
    ]
    assert "train_model" not in done.planned
    report = (checkout / "results/report.html").read_text("utf-8")
    plots = [f"{MODEL}/seed1/{name}.svg" for name in ("curve", "test.beam5.attention1")]
    assert all(plot in report for plot in plots)
    assert "learning curve" in report
    assert "results/shown/paper.table1.html" in report
    assert "results/mine_en_nl/bleu.html" in report
