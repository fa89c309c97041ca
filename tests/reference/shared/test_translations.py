"""A checkpoint of fairseq's over Multi30k: its translations, scores and perplexity are fairseq's.

Rows of ``expected_beam5.scores.tsv`` are in bits.
"""

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.decoding.rescoring import PairScore, PairScorer, score_pairs
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_line_pairs, read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.scoring.bleu import tokenized_bleu
from convs2s.text.bpe import join
from tests.support import fairseq

FAIRSEQ_BLEU = 29.5814
"""golden/fairseq_multi30k/scores.json: words as they are, against ref.tok.de."""


@pytest.fixture(scope="module")
def imported(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shared / "golden" / "fairseq_multi30k"
    output = tmp_path_factory.mktemp("multi30k") / "model.safetensors"
    names = "checkpoint_best.pt", "dict.en.txt", "dict.de.txt", "codes.8000"
    files = FairseqFiles(*(folder / name for name in names))
    import_fairseq(
        files, output, task="multi30k", languages=None, preparation="moses_test"
    )
    return output


def translator_of(model: Path, **settings: Any) -> LineTranslator:
    # A translation that never ends went on to 200 tokens.
    limit = MaximumLength(factor=0.0, offset=200)
    given = DecodingSettings(beam=5, maximum_length=limit, **settings)
    return LineTranslator([model], given, "cpu", pretokenized=True)


@pytest.mark.parametrize("lines", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_fairseqs_translations_have_fairseqs_scores(
    imported: Path, shared: Path, lines: int
) -> None:
    folder = shared / "golden" / "fairseq_multi30k"
    scorer = PairScorer.load([imported], "cpu", "tokens")
    pairs = read_line_pairs(folder / "src.bpe.en", folder / "expected_beam5.bpe.de")
    rows = islice(read_lines(folder / "expected_beam5.scores.tsv"), lines)
    for row, found in zip(rows, score_pairs(scorer, islice(pairs, lines)), strict=True):
        _, normalized, steps = row.split("\t")
        assert found.normalized(1.0) == pytest.approx(
            float(normalized) * math.log(2), abs=1e-4
        )
        assert found.tokens == len(steps.split())


@pytest.mark.parametrize(
    ("lines", "identical"), [(60, 60), pytest.param(1000, 995, marks=pytest.mark.slow)]
)
def test_translations_are_fairseqs(
    imported: Path, shared: Path, lines: int, identical: int
) -> None:
    folder = shared / "golden" / "fairseq_multi30k"
    source, expected, reference, rows = (
        list(read_lines(folder / name))[:lines]
        for name in (
            "src.bpe.en",
            "expected_beam5.bpe.de",
            "ref.tok.de",
            "expected_beam5.scores.tsv",
        )
    )
    found = list(translator_of(imported).translate(source))
    same = [ours.text == theirs for ours, theirs in zip(found, expected, strict=True)]
    scores = [float(row.split("\t")[1]) * math.log(2) for row in rows]
    assert sum(same) >= identical
    for number, theirs in enumerate(scores):
        # Another translation has nearly the score of fairseq's, which ours has, too (above).
        most = 1e-4 if same[number] else 1e-3
        assert found[number].score == pytest.approx(theirs, abs=most), number
        if not same[number]:
            print(
                f"line {number + 1}: {found[number].score:.6f}, fairseq's {theirs:.6f}"
            )
    bleus = [
        tokenized_bleu(list(map(join, tokens)), reference).score
        for tokens in ([one.text for one in found], expected)
    ]
    print(
        f"{sum(same)} of {lines} lines identical, BLEU {bleus[0]:.3f}, fairseq's {bleus[1]:.3f}"
    )
    assert bleus[0] == pytest.approx(bleus[1], abs=0.05)
    if lines == 1000:
        assert bleus[1] == pytest.approx(FAIRSEQ_BLEU, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_cheaper_arithmetic_costs_little(
    imported: Path, shared: Path, precision: str
) -> None:
    """Within 0.2 BLEU of fp32 on test_2016_flickr, and to the bit the same in every batch."""
    folder = shared / "golden" / "fairseq_multi30k"
    source, reference = (
        list(read_lines(folder / name)) for name in ("src.bpe.en", "ref.tok.de")
    )
    found = list(translator_of(imported, precision=precision).translate(source))
    bleu = tokenized_bleu([join(one.text) for one in found], reference).score
    print(
        f"{precision}: BLEU {bleu:.2f} of {len(source)} lines, fp32's {FAIRSEQ_BLEU:.2f}"
    )
    assert bleu == pytest.approx(FAIRSEQ_BLEU, abs=0.2)
    other = translator_of(imported, precision=precision, batch_sentences=7).translate(
        source[:200]
    )
    expected = [(one.text, one.score) for one in found[:200]]
    assert [(one.text, one.score) for one in other] == expected


def perplexity(scores: Sequence[PairScore]) -> float:
    """Return the perplexity of targets, each token counting alike."""
    total = sum(score.log_probability for score in scores)
    return math.exp(-total / sum(score.tokens for score in scores))


@pytest.mark.slow
def test_fairseqs_perplexity_leaves_out_the_six_longest_pairs(
    imported: Path, shared: Path
) -> None:
    """Its checkpoint's meters count 1,008 of the 1,014 validation pairs, and 16,128 tokens."""
    folder = shared / "golden" / "fairseq_multi30k" / "bpe"
    pairs = sorted(
        read_line_pairs(folder / "val.en", folder / "val.de"),
        key=lambda pair: [len(side.split()) for side in pair],
    )
    scores = list(score_pairs(PairScorer.load([imported], "cpu", "tokens"), pairs))
    assert sum(score.tokens for score in scores[:-6]) == 16_128
    assert perplexity(scores[:-6]) == pytest.approx(fairseq.PERPLEXITY, abs=0.005)
    assert perplexity(scores) == pytest.approx(15.44, abs=0.005)
