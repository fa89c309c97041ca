"""Summarization: from licensed files and from papers to rouge.txt, over a synthetic set."""

import json
import re
from pathlib import Path

import pytest

from convs2s.files.text import read_lines
from convs2s.scoring.rouge_stem import read_exceptions
from mirror.sentences import PAPER_PAIRS, TEST_PAIRS
from tests.support.checkout import Checkout, check_out
from tests.workflow.mirror import RESULTS, add_mirror

pytestmark = pytest.mark.slow

TASK = f"{RESULTS}/gigaword"
RUN = f"{TASK}/models/demo/seed1"
TITLES = f"{RESULTS}/arxiv_titles/corpus"
EXCEPTIONS = "data/exceptions of English.tsv"

# Thousands of pairs are seen once, in seconds. Outputs are so short that the minimum is what
# decides, where there is one.
PAPERS = "https://raw.githubusercontent.com/staeiou/arxiv_archive/f043eb1d71da6ed2fb9eac63ab8707359ff606ea/processed_data/20200101/per_category"
OPTIONS = f"""
scale: mirror
device: cpu
cores: 1
rouge_exceptions: {EXCEPTIONS}
overrides:
  models:
    demo:
      architecture:
        embedding: 16
        output_embedding: 16
        encoder: [{{layers: 1, width: 16, kernel: 3}}]
        decoder: [{{layers: 1, width: 16, kernel: 3}}]
      training: {{batch: {{sentences: 256, tokens: null}}, maximum_epochs: 1}}
  tasks:
    gigaword:
      headline: {{seeds: [1]}}
      vocabulary: {{source_size: 150, target_size: 120}}
    arxiv_titles:
      titles: {{files: [{PAPERS}/cs.NI.tsv.xz, {PAPERS}/cs.CR.tsv.xz], one_in: 5}}
  decodings:
    beam5: {{maximum_length: {{factor: 0.0, offset: 5}}}}
    beam5_minimum14: {{maximum_length: {{factor: 0.0, offset: 14}}}}
"""


@pytest.fixture(scope="module")
def scored(
    root: Path, mirror: Path, tmp_path_factory: pytest.TempPathFactory
) -> Checkout:
    """A checkout in which one command has made the headline of gigaword, and titles."""
    checkout = add_mirror(mirror, check_out(root, tmp_path_factory.mktemp("summaries")))
    checkout.write("config.local.yaml", OPTIONS)
    checkout.write(EXCEPTIONS, "mice\tmouse\n")
    done = checkout.snakemake(
        f"{TASK}/rouge.txt",
        f"{RUN}/gigaword.beam5.jsonl",
        f"{TITLES}/counts.txt",
        f"{TITLES}/raw/arxiv.target.zst",
        f"{TITLES}/raw/scitldr.reference3.target.zst",
    ).succeeded()
    assert "align_words" not in done.planned
    assert done.planned["extract_reference"] == 3 + 1
    assert done.planned["download_file"] == 2 + 1
    assert done.planned["write_title_corpus"] == 1
    return checkout


def test_words_and_all_references_are_taken_as_they_come_to_a_headline_beside_the_lead(
    scored: Checkout,
) -> None:
    raw, clean = (
        list(read_lines(scored / f"{TASK}/corpus/{stage}/valid.source.zst"))
        for stage in ("raw", "clean")
    )
    assert raw == clean
    assert any("##" in line for line in clean)
    given = scored / "data/duc2004/references/task1_ref3.txt"
    made = scored / f"{TASK}/corpus/raw/duc2004.reference3.target.zst"
    assert list(read_lines(made)) == list(read_lines(given))
    report = scored.json(f"{RUN}/duc2004.beam5_minimum14.rouge.json")
    assert report["references"] == 4
    text = scored.read(f"{TASK}/rouge.txt")
    assert text.startswith("STAND-IN DATA: a miniature mirror")
    assert f"gigaword: {TEST_PAIRS['gigaword_test']} lines" in text
    assert f"duc2004: {TEST_PAIRS['duc2004']} lines" in text
    assert re.search("ROUGE-1.*ROUGE-2.*ROUGE-L.*lead", text, re.DOTALL)
    assert f"exceptions:{read_exceptions(scored / EXCEPTIONS).digest}" in text


def test_outputs_have_the_minimum_length_where_one_is_asked(scored: Checkout) -> None:
    free, minimum = (
        [*map(json.loads, read_lines(scored / f"{RUN}/gigaword.{decoding}.jsonl"))]
        for decoding in ("beam5", "beam5_minimum14")
    )
    assert len(free) == len(minimum) == TEST_PAIRS["gigaword_test"]
    assert max(len(one["text"].split()) for one in free) <= 5
    assert {len(one["text"].split()) for one in minimum} == {14}
    copied = [word for one in minimum for word in one["replacements"]]
    assert copied
    assert all(word["by"] == "copied" for word in copied)


def test_titles_are_made_from_papers(scored: Checkout) -> None:
    counts = f"{RESULTS}/downloads/titles/arxiv_titles/counts.json"
    parts = scored.json(counts)["parts"]
    assert min(parts.values()) > 0
    titles = list(read_lines(scored / f"{TITLES}/raw/arxiv.target.zst"))
    assert len(titles) == parts["test"]
    report = scored.json(f"{TITLES}/clean/train.json")
    assert report["read"] == parts["train"]
    reference = list(read_lines(scored / f"{TITLES}/raw/scitldr.reference3.target.zst"))
    assert len(reference) == PAPER_PAIRS["scitldr"]
    assert sum(map(bool, reference)) == PAPER_PAIRS["scitldr"] // 3
