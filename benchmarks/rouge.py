"""How fast is ROUGE, with stems and confidence intervals?

Scores 2,000 pairs of an output and a title, and 500 outputs against 4 references each, all with
1,000 resamples. The texts are drawn from 30,000 made-up words, frequent and rare as in real text,
of the lengths of outputs (14 words) and titles (4 to 14). Medians of five, each from no stem known.
Prints each figure and, last, one JSON object: wall seconds.

    python benchmarks/rouge.py
"""

import json
from functools import partial
from itertools import islice, product

import numpy as np

from convs2s.scoring.rouge import ROUGE_SAMPLES, RougeOptions, rouge
from convs2s.scoring.rouge_stem import rouge_stem
from machine import RUNS, median_seconds

WORDS = 30_000
SETS = {"2,000 pairs": (2000, 1), "500 x 4 references": (500, 4)}
"""What is scored -> outputs, and references of each."""

LONGEST = 14
SHORTEST_TITLE = 4


def main() -> None:
    """Measure and print."""
    generator = np.random.default_rng(1)
    figures = {}
    for name, (count, references) in SETS.items():
        outputs = texts(generator, count, LONGEST)
        titles = [texts(generator, count, SHORTEST_TITLE) for _ in range(references)]
        figures[name] = round(median_seconds(partial(score, outputs, titles)), 3)
        print(
            f"{name}, {ROUGE_SAMPLES:,} resamples: {figures[name]:.3f} s (median of {RUNS})"
        )
    print(json.dumps(figures))


def score(outputs: list[str], titles: list[list[str]]) -> None:
    """Score as a job does, which knows no stem yet."""
    rouge_stem.cache_clear()
    rouge(outputs, *titles, options=RougeOptions(byte_limit=75, stem=True))


def texts(generator: np.random.Generator, count: int, shortest: int) -> list[str]:
    """Return texts of ``shortest`` to ``LONGEST`` words each."""
    syllables = [
        "ka",
        "le",
        "mo",
        "ri",
        "stu",
        "ven",
        "bal",
        "tion",
        "ing",
        "ment",
        "er",
        "s",
    ]
    words = ["".join(parts) for parts in islice(product(syllables, repeat=5), WORDS)]
    chances = 1 / np.arange(1, WORDS + 1)
    drawn = generator.choice(WORDS, (count, LONGEST), p=chances / chances.sum())
    lengths = generator.integers(shortest, LONGEST + 1, count)
    return [
        " ".join(words[i] for i in row[:n])
        for row, n in zip(drawn, lengths, strict=True)
    ]


if __name__ == "__main__":
    main()
