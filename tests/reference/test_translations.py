"""Translations, scores and perplexity of trained networks of fairseq's: its own, token by token.

Ours is small and trained on the demo's text; the other is of Multi30k, beside the repository. Rows
of ``expected_beam5.scores.tsv`` are in bits.
"""

import json
import math
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.decoding.rescoring import (
    PairScorer,
    score_pairs,
)
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.scoring.bleu import corpus_bleu
from convs2s.text.bpe import join
from tests.support.golden import DATA, TRAINED, golden_lines

OUTPUTS = [json.loads(line) for line in golden_lines(TRAINED, "outputs.jsonl")]
"""What fairseq found for each sentence of ``test200``."""
SOURCES = golden_lines(TRAINED, "test200.bpe.en")
TARGETS = golden_lines(TRAINED, "test200.bpe.fr")
REFERENCES = golden_lines(DATA / "tok", "tok-a.2017.fr")[: len(SOURCES)]
BLEU = 61.48
"""Of fairseq's translations by beam 5."""
MULTI30K_BLEU = 29.5814
"""golden/fairseq_multi30k/scores.json: words as they are, against ref.tok.de."""
END_TOKEN = " </s>"


def translator_of(
    model: Path, most: int = 60, pretokenized: bool = True, **settings: Any
) -> LineTranslator:
    """Return what translates by beam 5 unless told; ``most`` is fairseq's max_len_b."""
    limit = MaximumLength(factor=0.0, offset=most)
    given = DecodingSettings(maximum_length=limit, **settings)
    return LineTranslator([model], given, "cpu", pretokenized=pretokenized)


def bleu_of(texts: Iterable[str], references: Sequence[str] = REFERENCES) -> float:
    return corpus_bleu([join(text) for text in texts], references).score


@pytest.mark.parametrize("beam", [1, 5])
def test_hypotheses_are_fairseqs(trained: Path, beam: int) -> None:
    found = list(translator_of(trained, beam=beam).translate(SOURCES, n_best=beam))
    assert len(found) == len(OUTPUTS) == 200
    for ours, theirs in zip(found, OUTPUTS, strict=True):
        expected = [theirs["beam1"]] if beam == 1 else theirs["beam5"]
        tokens = [one.text + END_TOKEN for one in ours.n_best]
        assert tokens == [one["tokens"] for one in expected]
        scores = [one.score for one in ours.n_best]
        assert scores == pytest.approx([one["score"] for one in expected], abs=1e-5)
    if beam == 5:
        bleu = bleu_of(one.text for one in found)
        assert bleu == pytest.approx(BLEU, abs=0.005)


def test_references_have_fairseqs_log_probability(trained: Path) -> None:
    scorer = PairScorer.load([trained], "cpu", "tokens")
    found = list(score_pairs(scorer, zip(SOURCES, TARGETS, strict=True)))
    expected = [output["reference_logprob"] for output in OUTPUTS]
    assert [one.log_probability for one in found] == pytest.approx(expected, abs=2e-4)
    counts = [len(target.split()) + 1 for target in TARGETS]
    assert [one.tokens for one in found] == counts


def test_raw_text_is_prepared_as_fairseqs_input_was(trained: Path) -> None:
    translator = translator_of(trained, pretokenized=False)
    raw = golden_lines(DATA / "tok", "input.en")[: len(SOURCES)]
    assert [" ".join(translator.prepare(line, 1)) for line in raw] == SOURCES
    found = [" ".join(one.tokens) + END_TOKEN for one in translator.translate(raw[:20])]
    assert found == [output["beam5"][0]["tokens"] for output in OUTPUTS[:20]]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_cheaper_arithmetic_costs_little(trained: Path, precision: str) -> None:
    """Within 0.5 BLEU of fp32, and to the bit the same in every batch."""
    found = list(translator_of(trained, precision=precision).translate(SOURCES))
    assert bleu_of([one.text for one in found]) == pytest.approx(BLEU, abs=0.5)
    others = translator_of(trained, precision=precision, batch_sentences=7)
    expected = [(one.text, one.score) for one in found[:50]]
    assert [(one.text, one.score) for one in others.translate(SOURCES[:50])] == expected


# ---- Multi30k ----


@pytest.fixture(scope="module")
def multi30k(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of fairseq's checkpoint."""
    folder = shared / "golden/fairseq_multi30k"
    output = tmp_path_factory.mktemp("multi30k") / "model.safetensors"
    names = "checkpoint_best.pt", "dict.en.txt", "dict.de.txt", "codes.8000"
    files = FairseqFiles(*(folder / name for name in names))
    import_fairseq(files, output, task="m", languages=None, preparation="moses_test")
    return output


@pytest.mark.parametrize(
    ("lines", "identical"), [(60, 60), pytest.param(1000, 995, marks=pytest.mark.slow)]
)
def test_translations_of_multi30k_are_fairseqs(
    multi30k: Path, shared: Path, lines: int, identical: int
) -> None:
    folder = shared / "golden/fairseq_multi30k"
    names = "src.bpe.en expected_beam5.bpe.de ref.tok.de expected_beam5.scores.tsv"
    source, expected, reference, rows = (
        list(islice(read_lines(folder / name), lines)) for name in names.split()
    )
    scorer = PairScorer.load([multi30k], "cpu", "tokens")
    scored = score_pairs(scorer, zip(source, expected, strict=True))
    found = list(translator_of(multi30k, most=200).translate(source))
    same = 0
    for ours, theirs, given, row in zip(found, expected, scored, rows, strict=True):
        _, normalized, steps = row.split("\t")
        score = float(normalized) * math.log(2)
        assert given.normalized(1.0) == pytest.approx(score, abs=1e-4)
        assert given.tokens == len(steps.split())
        # Another translation has nearly the score of fairseq's.
        is_same = ours.text == theirs
        assert ours.score == pytest.approx(score, abs=1e-4 if is_same else 1e-3)
        same += is_same
    assert same >= identical
    bleu = bleu_of(expected, reference)
    of_ours = bleu_of((one.text for one in found), reference)
    assert of_ours == pytest.approx(bleu, abs=0.05)
    if lines == 1000:
        assert bleu == pytest.approx(MULTI30K_BLEU, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_cheaper_arithmetic_costs_little_on_multi30k(
    multi30k: Path, shared: Path, precision: str
) -> None:
    """Within 0.2 BLEU of fp32 on test_2016_flickr."""
    folder = shared / "golden/fairseq_multi30k"
    translator = translator_of(multi30k, most=200, precision=precision)
    found = translator.translate(read_lines(folder / "src.bpe.en"))
    bleu = bleu_of((one.text for one in found), list(read_lines(folder / "ref.tok.de")))
    print(f"{precision}: BLEU {bleu:.2f}, fp32's {MULTI30K_BLEU:.2f}")
    assert bleu == pytest.approx(MULTI30K_BLEU, abs=0.2)
