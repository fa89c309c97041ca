"""Translations, scores and perplexity of trained networks of fairseq's: its own, token by token.

Ours is small and trained on the demo's text; the other is of Multi30k, beside the repository.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings, MaximumLength
from convs2s.decoding.rescoring import PairScorer, score_pairs
from convs2s.decoding.translate import LineTranslator
from convs2s.files.text import read_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.scoring.bleu import corpus_bleu
from convs2s.text.bpe import join
from tests.support.golden import DATA, golden_lines
from tests.support.trained import TRAINED

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


def translator_of(model: Path, most: int = 60, **settings: Any) -> LineTranslator:
    """Return what translates tokens; ``most`` is fairseq's max_len_b."""
    limit = MaximumLength(factor=0.0, offset=most)
    given = DecodingSettings(maximum_length=limit, **settings)
    return LineTranslator([model], given, "cpu", pretokenized=True)


def bleu_of(texts: Iterable[str], references: Sequence[str] = REFERENCES) -> float:
    """Return the BLEU of tokens against the first references."""
    joined = [join(text.removesuffix(END_TOKEN)) for text in texts]
    return corpus_bleu(joined, references[: len(joined)]).score


def test_hypotheses_are_fairseqs(trained: Path) -> None:
    found = list(translator_of(trained).translate(SOURCES, n_best=5))
    assert len(found) == len(OUTPUTS) == 200
    for ours, theirs in zip(found, OUTPUTS, strict=True):
        for one, expected in zip(ours.n_best, theirs["beam5"], strict=True):
            assert one.text + END_TOKEN == expected["tokens"]
            assert one.score == pytest.approx(expected["score"], abs=1e-5)
    assert bleu_of(one.text for one in found) == pytest.approx(BLEU, abs=0.005)


def test_references_have_fairseqs_log_probability(trained: Path) -> None:
    scorer = PairScorer.load([trained], "cpu", "tokens")
    found = list(score_pairs(scorer, zip(SOURCES, TARGETS, strict=True)))
    expected = [output["reference_logprob"] for output in OUTPUTS]
    assert [one.log_probability for one in found] == pytest.approx(expected, abs=2e-4)
    counts = [len(target.split()) + 1 for target in TARGETS]
    assert [one.tokens for one in found] == counts


@pytest.mark.parametrize(("precision", "count"), [("bf16", 50), ("int8", 200)])
def test_cheaper_arithmetic_costs_little(
    trained: Path, precision: str, count: int
) -> None:
    """Within 0.5 BLEU of fp32, and to the bit the same in every batch."""
    found = list(translator_of(trained, precision=precision).translate(SOURCES[:count]))
    fp32 = bleu_of(output["beam5"][0]["tokens"] for output in OUTPUTS[:count])
    assert bleu_of(one.text for one in found) == pytest.approx(fp32, abs=0.5)
    others = translator_of(trained, precision=precision, batch_sentences=7)
    for one, other in zip(found, others.translate(SOURCES[:14]), strict=False):
        assert (one.text, one.score) == (other.text, other.score)


# ---- Multi30k ----


@pytest.fixture(scope="module")
def multi30k(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model file of fairseq's checkpoint."""
    folder = shared / "golden" / "fairseq_multi30k"
    output = tmp_path_factory.mktemp("multi30k") / "model.safetensors"
    names = "checkpoint_best.pt", "dict.en.txt", "dict.de.txt", "codes.8000"
    files = FairseqFiles(*(folder / name for name in names))
    import_fairseq(files, output, task="m", languages=None, preparation="moses_test")
    return output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "most"), [("fp32", 0.05), ("bf16", 0.2), ("int8", 0.2)]
)
def test_bleu_on_multi30k_is_fairseqs(
    multi30k: Path, shared: Path, precision: str, most: float
) -> None:
    """Of the thousand sentences of test_2016_flickr."""
    folder = shared / "golden" / "fairseq_multi30k"
    translator = translator_of(multi30k, most=200, precision=precision)
    found = translator.translate(read_lines(folder / "src.bpe.en"))
    references = list(read_lines(folder / "ref.tok.de"))
    bleu = bleu_of((one.text for one in found), references)
    print(f"{precision}: BLEU {bleu:.2f}, fairseq's {MULTI30K_BLEU:.2f}")
    assert bleu == pytest.approx(MULTI30K_BLEU, abs=most)
