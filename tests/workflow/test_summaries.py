"""Summarization: from licensed files, which may be missing, and from papers, to rouge.txt."""

import json
import re
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.files.text import read_lines
from convs2s.scoring.rouge_stem import read_exceptions
from mirror.sentences import PAPER_PAIRS, TEST_PAIRS
from tests.support.checkout import Checkout, Done, check_out
from tests.support.mirror import DEVICE, QUICK, RESULTS, add_mirror

RUN = f"{RESULTS}/gigaword/models/demo/seed1"
TITLES = f"{RESULTS}/arxiv_titles/corpus"
TABLES = 2  # of papers
MOST_WORDS = 5
EXCEPTIONS = "data/exceptions of English.tsv"
DUC_LINES = TEST_PAIRS["duc2004"]


@pytest.fixture(scope="module")
def scored(
    root: Path, mirror: Path, tmp_path_factory: pytest.TempPathFactory
) -> Checkout:
    """A checkout in which one command has made the headline of gigaword, over a synthetic set."""
    checkout = add_mirror(mirror, check_out(root, tmp_path_factory.mktemp("summaries")))
    papers = load(root).tasks["arxiv_titles"].titles
    assert papers
    tasks = {
        "gigaword": {
            "headline": {"seeds": [1]},
            "vocabulary": {"source_size": 150, "target_size": 120},
        },
        "arxiv_titles": {"titles": {"files": list(papers.files[:TABLES]), "one_in": 5}},
    }
    # So short that the minimum is what decides, where there is one.
    short = {"maximum_length": {"factor": 0.0, "offset": MOST_WORDS}}
    decodings = {"beam5": short, "beam5_minimum14": short}
    overrides = {"models": {"demo": QUICK}, "tasks": tasks, "decodings": decodings}
    checkout.write(EXCEPTIONS, "mice\tmouse\n")
    exceptions = {"rouge_exceptions": EXCEPTIONS}
    checkout.configure({**DEVICE, **exceptions, "overrides": overrides})
    done = checkout.snakemake(
        f"{RESULTS}/gigaword/rouge.txt",
        f"{RUN}/gigaword.beam5.jsonl",
        f"{TITLES}/counts.txt",
        f"{TITLES}/raw/arxiv.target.zst",
        f"{TITLES}/raw/scitldr.reference3.target.zst",
    ).succeeded()
    assert "align_words" not in done.planned
    assert done.planned["extract_reference"] == 3 + 1
    assert done.planned["download_file"] == TABLES + 1
    assert done.planned["write_title_corpus"] == 1
    return checkout


def missing(checkout: Checkout) -> Done:
    return checkout.snakemake("-n", "results/gigaword/rouge.txt")


def test_missing_files_are_named_in_one_message(root: Path, checkout: Checkout) -> None:
    done = missing(checkout)
    assert done.code == 1
    (error,) = done.errors
    assert "Traceback" not in done.said
    assert "Exception" not in done.said
    files = load(root).tasks["gigaword"].references()
    assert len(files) == 11
    assert error.startswith(f"error: gigaword: missing files: {', '.join(files)}; ")
    for name in ("LDC2003T05", "DUC 2004 from NIST", "NAMAS", "docs/summarization.md"):
        assert name in error
    for file in files[:-1]:
        checkout.write(file, "")
    (error,) = missing(checkout).errors
    assert f"missing files: {files[-1]}; " in error


def test_the_headline_stands_beside_the_lead_baseline(scored: Checkout) -> None:
    text = (scored / f"{RESULTS}/gigaword/rouge.txt").read_text("utf-8")
    assert text.startswith("STAND-IN DATA: a miniature mirror")
    for name in ("gigaword", "duc2004"):
        assert (
            f"{name}: {TEST_PAIRS[{'gigaword': 'gigaword_test'}.get(name, name)]} lines"
            in text
        )
    for metric in ("ROUGE-1", "ROUGE-2", "ROUGE-L", "lead"):
        assert metric in text
    assert f"exceptions:{read_exceptions(scored / EXCEPTIONS).digest}" in text


def test_outputs_have_the_minimum_length_where_one_is_asked(scored: Checkout) -> None:
    lengths = {}
    for decoding in ("beam5", "beam5_minimum14"):
        lines = (
            (scored / f"{RUN}/gigaword.{decoding}.jsonl")
            .read_text("utf-8")
            .splitlines()
        )
        lengths[decoding] = {len(json.loads(line)["text"].split()) for line in lines}
        assert len(lines) == TEST_PAIRS["gigaword_test"]
    assert max(lengths["beam5"]) <= MOST_WORDS
    assert lengths["beam5_minimum14"] == {14}


def test_words_are_taken_as_they_come(scored: Checkout) -> None:
    folder = scored / f"{RESULTS}/gigaword/corpus"
    raw, clean = (
        list(read_lines(folder / f"{stage}/valid.source.zst"))
        for stage in ("raw", "clean")
    )
    assert raw == clean
    assert any(re.search(r"#{2,}", line) for line in clean)


def test_unknown_words_are_copied(scored: Checkout) -> None:
    lines = (
        (scored / f"{RUN}/gigaword.beam5_minimum14.jsonl")
        .read_text("utf-8")
        .splitlines()
    )
    outputs = [json.loads(line) for line in lines]
    replaced = [(output, one) for output in outputs for one in output["replacements"]]
    assert replaced
    for output, one in replaced:
        assert one["by"] == "copied"
        assert one["word"] == one["source_word"]
        assert one["word"] in output["source"].split()


def test_duc_has_four_references(scored: Checkout) -> None:
    folder = scored / f"{RESULTS}/gigaword/corpus/raw"
    for number in range(1, 4):
        given = list(
            read_lines(scored / f"data/duc2004/references/task1_ref{number}.txt")
        )
        found = list(read_lines(folder / f"duc2004.reference{number}.target.zst"))
        assert found == given
        assert len(found) == DUC_LINES
    report = (scored / f"{RUN}/duc2004.beam5_minimum14.rouge.json").read_text("utf-8")
    assert json.loads(report)["references"] == 4


def test_a_reference_that_is_too_short_is_named(
    scored: Checkout, tmp_path: Path
) -> None:
    checkout = scored.copy(tmp_path)
    name = "data/duc2004/references/task1_ref2.txt"
    checkout.write(name, "only one\n")
    done = checkout.snakemake(
        f"{RESULTS}/gigaword/corpus/raw/duc2004.reference2.target.zst"
    )
    assert done.code == 1
    (error,) = done.errors
    target = "data/duc2004/references/task1_ref0.txt"
    assert f"{target} has {DUC_LINES} lines but {name} has 1" in error


def test_text_is_not_asked_for_again_once_it_is_prepared(
    scored: Checkout, tmp_path: Path
) -> None:
    checkout = scored.copy(tmp_path)
    (checkout / "data/gigaword/train.article.txt").unlink()
    done = checkout.snakemake("-n", f"{RUN}/gigaword.greedy.jsonl").succeeded()
    assert done.planned == {"decode_test_set": 1}


def test_titles_are_made_from_papers(scored: Checkout) -> None:
    made = scored / f"{RESULTS}/downloads/titles/arxiv_titles"
    parts = json.loads((made / "counts.json").read_text("utf-8"))["parts"]
    assert min(parts.values()) > 0
    assert (
        len(list(read_lines(scored / f"{TITLES}/raw/arxiv.target.zst")))
        == parts["test"]
    )
    report = json.loads((scored / f"{TITLES}/clean/train.json").read_text("utf-8"))
    assert report["read"] == parts["train"]
    reference = list(read_lines(scored / f"{TITLES}/raw/scitldr.reference3.target.zst"))
    assert len(reference) == PAPER_PAIRS["scitldr"]
    assert sum(map(bool, reference)) == PAPER_PAIRS["scitldr"] // 3
