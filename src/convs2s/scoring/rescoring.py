"""What rescoring an n-best list gains: BLEU of four choices from it, as text and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.evaluation import BleuScores, bleu_scores
from convs2s.scoring.n_best import (
    MODEL,
    Criterion,
    Group,
    average_with,
    best,
    every_sentence,
    read_n_best,
)
from convs2s.scoring.oracle import Reader, first_and_oracle
from convs2s.scoring.text_table import aligned, heading, underlined

CHOICES = {
    "first": "the list's own score",
    "model": "the rescoring model's score",
    "average": "the even average of both",
    "oracle": "oracle, by the references",
}


def rescore_n_best(
    *,
    n_best: Path,
    raw: Path,
    tokenized: Path,
    translations: Path,
    text: Path,
    json: Path,
    restore: Reader,
    stand_in: str | None,
    header: Mapping[str, str],
    test_set: str,
    manifest: Mapping[str, object],
) -> None:
    """Choose from a scored n-best list in four ways, score each, and write the average's choice.

    Args:
        n_best: the list, in words, with the feature of the rescoring model.
        raw: the target side as published.
        tokenized: the same in the words of the task.
        translations: the average's choice as plain text, to write.
        text: the report to write.
        json: the same numbers unrounded, with the manifest.
        restore: from words to plain text.
        stand_in: what the data is, where it is not the paper's; it heads the report.
        header: what the report begins with.
        test_set: the test set's name.
        manifest: what the numbers rest on.

    Raises:
        UserError: a file is missing or malformed, or the files differ in their number of lines.
    """
    published, in_words = (list(read_lines(path)) for path in (raw, tokenized))
    choices = _choices(n_best, in_words)
    plain = {name: list(map(restore, choices[name])) for name in choices}
    bleu = {name: bleu_scores(choices[name], in_words, plain[name], published) for name in choices}
    write_lines(translations, plain["average"])
    about = {"stand_in": stand_in, **header, "test_set": test_set, "lines": len(published)}
    write_json(json, {**about, "bleu": bleu, "manifest": manifest})
    write_lines(text, _report(stand_in, header, f"{test_set}: {len(published)} lines", bleu))


def _choices(scored: Path, reference: Sequence[str]) -> dict[str, list[str]]:
    """Return each choice's words, reading the list anew for each: no more is in memory."""

    def groups() -> Iterator[Group]:
        return every_sentence(read_n_best(read_lines(scored), str(scored)))

    def by(criterion: Criterion) -> list[str]:
        return [best(group, criterion).text for group in groups()]

    first, oracle = first_and_oracle(groups(), [reference], "tokenized")
    model = by(lambda one: one.feature(MODEL))
    return {"first": first, "model": model, "average": by(average_with(MODEL)), "oracle": oracle}


def _report(
    stand_in: str | None, header: Mapping[str, str], title: str, bleu: Mapping[str, BleuScores]
) -> Iterator[str]:
    yield from heading(stand_in, header)
    yield from underlined(f"{title}, one hypothesis of each")
    yield from aligned(
        ["chosen by", "tokenized BLEU", "detokenized BLEU"],
        (
            [CHOICES[name], f"{both.tokenized.score:.2f}", f"{both.detokenized.score:.2f}"]
            for name, both in bleu.items()
        ),
    )
    yield ""
    yield f"tokenized BLEU: {bleu['first'].tokenized.signature}"
    yield f"detokenized BLEU: {bleu['first'].detokenized.signature}"
