"""A metric: the word error rate, edits of words in 100 words of the reference; 0 is best.

Run it: put `extensions: [examples/word_error_rate.py]` into config.yaml and `metrics: [WER]` into a
task's file, and ask for the task's bleu.txt; or score a file:

    convs2s score bleu --metric WER --reference test.fr < translations.fr

It shows what a metric is: a function of the translations and their references, both plain text in
the same order. Its name and value stand beside BLEU in bleu.txt and bleu.json.
"""

from collections.abc import Sequence


def word_error_rate(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return the insertions, deletions and substitutions in 100 words of the references."""
    wrong = 0
    words = 0
    for translation, reference in zip(translations, references, strict=True):
        right = reference.split()
        wrong += edits(translation.split(), right)
        words += len(right)
    return 100 * wrong / max(1, words)


def edits(ours: Sequence[str], right: Sequence[str]) -> int:
    """Return the fewest edits that turn one sequence into the other (Levenshtein 1966)."""
    row = list(range(len(right) + 1))
    for number, word in enumerate(ours, start=1):
        diagonal = row[0]
        row[0] = number
        for place, other in enumerate(right, start=1):
            substituted = diagonal + (word != other)
            diagonal = row[place]
            row[place] = min(row[place] + 1, row[place - 1] + 1, substituted)
    return row[-1]


METRICS = {"WER": word_error_rate}
