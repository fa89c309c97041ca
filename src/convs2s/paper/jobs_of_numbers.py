"""The jobs between a run's model and its numbers: what their logs and benchmarks are named.

Planning asks for it, so this module imports nothing that only jobs have.
"""

from convs2s.paper.cells import MEASURES, Cell

_JOBS = {
    "{testset}.{decoding}.bleu.json": ("{testset}.{decoding}.decode", "{testset}.{decoding}.bleu"),
    "{testset}.{decoding}.rouge.json": (
        "{testset}.{decoding}.decode",
        "{testset}.{decoding}.rouge",
    ),
    "{testset}.rescored.bleu.json": ("{testset}.scored", "{testset}.rescored"),
    "{testset}.{decoding}.example.json": ("{testset}.{decoding}.example",),
    "{testset}.{decoding}.cpu.speed.json": ("{testset}.{decoding}.cpu.speed",),
    "{testset}.{decoding}.cuda.speed.json": ("{testset}.{decoding}.cuda.speed",),
    "phrases.{phrases}.json": ("phrases.{phrases}",),
    "training.json": (),
    "training.speed.json": (),
}
"""File of a measure -> the jobs between a model and it."""

_TUNING = ("{testset}.{decoding}.nbest", "{testset}.{decoding}.length_penalty")
"""The jobs that tune a length penalty on a development set."""


def jobs_of(cell: Cell) -> list[str]:
    """Return the names of the jobs between a cell's models and its numbers, in their order."""
    names = {"testset": cell.testset, "decoding": cell.decoding, "phrases": cell.phrases}
    return [stem.format(**names) for stem in _JOBS[MEASURES[cell.measure].file]]


def tuning_of(cell: Cell, development_set: str) -> list[str]:
    """Return those of the jobs that tune its length penalty on a set; none where it has no jobs."""
    named = {"testset": development_set, "decoding": cell.decoding}
    return [stem.format(**named) for stem in _TUNING] if jobs_of(cell) else []
