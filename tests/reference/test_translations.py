"""Translations and scores of a trained network: fairseq's, token by token."""

from pathlib import Path
from typing import Any

import pytest
import torch

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.data.vocabulary import END
from convs2s.decoding.inspection import layer_attention
from convs2s.decoding.rescoring import (
    GivenTargets,
    LocatedLine,
    PairScorer,
    score_pairs,
)
from convs2s.decoding.translate import LineTranslator
from convs2s.scoring.bleu import tokenized_bleu
from convs2s.text.bpe import join
from tests.support.golden import DATA, golden_lines
from tests.support.trained import TRAINED, import_trained, outputs

OUTPUTS = outputs()
SOURCES, TARGETS = (
    golden_lines(TRAINED, f"test200.bpe.{side}") for side in ("en", "fr")
)
REFERENCES = golden_lines(DATA / "tok", "tok-a.2017.fr")[: len(SOURCES)]
BLEU = 61.48
"""Of fairseq's translations by beam 5."""
END_TOKEN = " </s>"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_trained(tmp_path_factory.mktemp("trained"))


def translator_of(model: Path, beam: int, **settings: Any) -> LineTranslator:
    limit = MaximumLength(factor=0.0, offset=60)  # fairseq's max_len_b
    given = DecodingSettings(beam=beam, maximum_length=limit, **settings)
    return LineTranslator([model], given, "cpu", pretokenized=True)


def bleu_of(texts: list[str]) -> float:
    return tokenized_bleu([join(text) for text in texts], REFERENCES).score


@pytest.mark.parametrize("beam", [1, 5])
def test_hypotheses_are_fairseqs(imported: Path, beam: int) -> None:
    found = list(translator_of(imported, beam).translate(SOURCES, n_best=beam))
    assert len(found) == len(OUTPUTS) == 200
    for ours, theirs in zip(found, OUTPUTS, strict=True):
        hypotheses = [theirs["beam1"]] if beam == 1 else theirs["beam5"]
        assert [one.text + END_TOKEN for one in ours.n_best] == [
            h["tokens"] for h in hypotheses
        ]
        scores = [one.score for one in ours.n_best]
        assert scores == pytest.approx([h["score"] for h in hypotheses], abs=1e-5)
    if beam == 5:
        assert f"{bleu_of([one.text for one in found]):.2f}" == f"{BLEU:.2f}"


def test_each_token_has_fairseqs_score_and_attention(imported: Path) -> None:
    translator = translator_of(imported, 1)
    network, compared = translator._networks[0], 0
    for source, output in zip(SOURCES, OUTPUTS, strict=True):
        best = output["beam5"][0]
        given = translator.source.encode(source.split())
        target = translator.target.encode(
            best["tokens"].removesuffix(END_TOKEN).split()
        )
        with torch.inference_mode():
            logits, _ = network(
                torch.tensor([given]), torch.tensor([[END, *target[:-1]]])
            )
        scores = logits[0].log_softmax(1)[range(len(target)), target]
        assert scores.tolist() == pytest.approx(best["positional_scores"], abs=1e-4)
        places = layer_attention(network, given, target).mean(0).argmax(1).tolist()
        for ours, theirs, margin in zip(
            places, best["attention_argmax"], best["attention_margin"], strict=True
        ):
            if margin > 1e-3:
                compared += 1
                assert ours == theirs
    assert compared > 2500


def test_references_have_fairseqs_log_probability(imported: Path) -> None:
    scorer = PairScorer.load([imported], "cpu", "tokens")
    found = list(score_pairs(scorer, zip(SOURCES, TARGETS, strict=True)))
    expected = [output["reference_logprob"] for output in OUTPUTS]
    assert [one.log_probability for one in found] == pytest.approx(expected, abs=2e-4)
    assert [one.tokens for one in found] == [
        len(target.split()) + 1 for target in TARGETS
    ]


def test_fairseqs_hypotheses_have_fairseqs_scores(imported: Path) -> None:
    scorer = PairScorer.load([imported], "cpu", "tokens")
    given = []
    for source, output in zip(SOURCES, OUTPUTS, strict=True):
        targets = [one["tokens"].removesuffix(END_TOKEN) for one in output["beam5"]]
        located = [LocatedLine(target, "beam5") for target in targets]
        given.append(GivenTargets(LocatedLine(source, "source"), located))
    for ours, output in zip(scorer.score(given), OUTPUTS, strict=True):
        scores = [one.normalized(1.0) for one in ours]
        assert scores == pytest.approx(
            [one["score"] for one in output["beam5"]], abs=1e-5
        )


def test_raw_text_is_prepared_as_fairseqs_input_was(imported: Path) -> None:
    limit = MaximumLength(factor=0.0, offset=60)
    translator = LineTranslator(
        [imported], DecodingSettings(maximum_length=limit), "cpu"
    )
    raw = golden_lines(DATA / "tok", "input.en")[: len(SOURCES)]
    assert [" ".join(translator.prepare(line, 1)) for line in raw] == SOURCES
    found = [" ".join(one.tokens) + END_TOKEN for one in translator.translate(raw[:20])]
    assert found == [output["beam5"][0]["tokens"] for output in OUTPUTS[:20]]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_cheaper_arithmetic_costs_little(imported: Path, precision: str) -> None:
    """Within 0.5 BLEU of fp32, and to the bit the same in every batch."""
    found = list(translator_of(imported, 5, precision=precision).translate(SOURCES))
    bleu = bleu_of([one.text for one in found])
    print(f"{precision}: BLEU {bleu:.2f}, fp32's {BLEU:.2f}")
    assert bleu == pytest.approx(BLEU, abs=0.5)
    others = translator_of(imported, 5, precision=precision, batch_sentences=7)
    expected = [(one.text, one.score) for one in found[:50]]
    assert [(one.text, one.score) for one in others.translate(SOURCES[:50])] == expected
