"""What the ledger has on the cells that a claim names: scores, sentences, and what to draw anew."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, Literal

import numpy as np

from convs2s.config.claims import CellName, row_index
from convs2s.config.measures import MEASURES
from convs2s.config.paper import Row, printed_number
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.paper.cells import CellAddress
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import rank_of
from convs2s.scoring.bleu import Statistics, decode_statistics
from convs2s.scoring.significance import (
    LEAST_RUNS,
    Measures,
    SampledRuns,
    SetScores,
    drawn_measures,
    measured,
)

LOWER_IS_BETTER = ("perplexity", "test_perplexity", "training_hours", "seconds_cpu", "seconds_cuda")
"""Measures; of all others the higher value is better."""

EntriesOfCells = Mapping[CellAddress, Sequence[LedgerEntry]]
"""The entries of the runs that each cell shows."""

_ROUNDING = 1e-9  # of sums of weights

Quantity = Literal["score", "without_brevity", "length_ratio"]
"""What is taken of a run: the score of the cell's measure, or what its sentences give beside it."""


@dataclass(frozen=True)
class Evidence:
    """What is known of a cell."""

    address: CellAddress
    label: str  # what a comparison calls it
    heading: str  # of its column
    measure: str  # empty for a printed value of a column that names none
    printed: float | None  # the paper's number; None where it prints none
    is_cited: bool  # whether the printed number is all that there is
    entries: tuple[LedgerEntry, ...]  # the runs that have a score, by name
    missing: str | None  # why there is no score; None where there is one

    @property
    def trainings(self) -> int:
        """How many trainings it rests on: an ensemble on those of its models."""
        return sum(len(members(run)) for run in self.runs)

    @property
    def runs(self) -> list[str]:
        """Their names, each once: several processors may have made a run."""
        return list(dict.fromkeys(entry.run.run for entry in self.entries))

    @property
    def ensemble(self) -> LedgerEntry | None:
        """The one entry, where it is an ensemble's."""
        return self.entries[0] if len(self.runs) == 1 < self.trainings else None

    @property
    def runs_in_words(self) -> str:
        """How many runs there are, or which ensemble."""
        ensembles = [run for run in self.runs if run.startswith("ensemble")]
        if self.is_cited:
            return "printed"
        return ", ".join(ensembles) or str(len(self.runs))

    def scores(self, quantity: Quantity = "score") -> list[float]:
        """Return what is taken of each run."""
        if quantity == "score":
            return [entry.scores[self.measure].score for entry in self.entries]
        return [of_run.item() for of_run in self._measured(quantity, measured)]

    def drawn(self, quantity: Quantity) -> SetScores | None:
        """Return the same on test sets drawn anew (runs, draws); None without the sentences."""
        name = "length_ratio" if self.measure == "length_ratio" else quantity
        of_runs = self._measured(name, drawn_measures)
        return np.stack(of_runs) if len(of_runs) == len(self.entries) else None

    def _measured(
        self, quantity: Quantity, measures_of: Callable[[Statistics], Measures]
    ) -> list[SetScores]:
        """Return what the sentences of each run give, of those that have any."""
        name = "bleu" if quantity == "score" else quantity
        texts = self.sentences(quantity)
        return [getattr(_measures(text, measures_of), name) for text in texts]

    def sentences(self, quantity: Quantity) -> list[str]:
        """Return the sentence statistics of the runs that have any.

        Those of the measure itself; for detokenized BLEU those of tokenized BLEU; for a length any
        tokenized BLEU's, as all have the same words.
        """
        measure = self.measure.replace("detokenized", "tokenized")
        texts = []
        for entry in self.entries:
            if "length_ratio" in (quantity, self.measure):
                measure = next(iter(entry.sentences), "")
            if measure in entry.sentences:
                texts.append(entry.sentences[measure])
        return texts

    @property
    def length_ratio(self) -> float | None:
        """The mean over the runs; None where the sentences of one are not known."""
        ratios = self.scores("length_ratio")
        return float(np.mean(ratios)) if ratios and len(ratios) == len(self.entries) else None


ProcessorsOfRun = Callable[[LedgerEntry], list[str | None]]

CellFinder = Callable[[Sequence[CellName]], list[Evidence]]
"""Gives what is known of cells that are held against each other (`on_one_processor`)."""

Weighted = Sequence[tuple[float, Evidence]]
"""Cells, and how often each counts: negative on the worse side, or where lower is better."""


def evidence(settings: Settings, name: CellName, entries: EntriesOfCells) -> Evidence:
    """Return what there is on a cell that a claim names."""
    table = settings.tables[name.table]
    index = row_index(name, settings.tables, "config/claims.yaml")
    row = table.rows[index]
    column = next(column for column in table.columns if column.key == name.column)
    address = CellAddress(name.table, index, name.column)
    is_cited = row.kind == "cited"
    scored = sorted(entries.get(address, ()), key=lambda entry: entry.run.run)
    missing = None
    if is_cited and settings.scale.stand_in:
        missing = "a printed value is of the paper's data"
    elif not is_cited and not scored:
        missing = _why_missing(settings, name.table, row)
    label = [name.table, row.group, repr(row.system)]
    if len(table.columns) > 1:
        label.append(column.name)
    return Evidence(
        address=address,
        label=" ".join(filter(None, label)),
        heading=column.name,
        measure=row.measures.get(name.column, column.measure) or "",
        printed=printed_number(row, name.column),
        is_cited=is_cited,
        entries=tuple(scored),
        missing=missing,
    )


def _why_missing(settings: Settings, table: str, row: Row) -> str:
    """Return why no run of a row of ours has a score."""
    if table not in settings.paper or settings.scale.why_left_out(row):
        return "left out at this scale"
    model = row.model if settings.scale.has_task(row.task) else None
    return "not run" if model and settings.scale.model_for(model) else "no stand-in"


def equal_processors(runs: EntriesOfCells) -> ProcessorsOfRun:
    """Return what names the processors that give the numbers of a run, its own first.

    Another one does if both have made trainings of this kind of network and precision, which decide
    on the kernels, and perplexity is the same to the last digit in all: rounding that differs
    anywhere changes most of its digits within a training.
    """
    # Kernels -> processor -> training -> its perplexity.
    made: dict[object, dict[str | None, dict[str, float]]] = {}
    for entry in chain.from_iterable(runs.values()):
        score = entry.scores.get("perplexity")
        if entry.processor and score:
            trained = made.setdefault(_kernels(entry), {}).setdefault(entry.processor, {})
            trained[entry.fingerprint] = score.score

    def processors(entry: LedgerEntry) -> list[str | None]:
        """Return the processors whose numbers of a run would be the entry's, its own first."""
        of_kernels = made.get(_kernels(entry), {})
        own = of_kernels.get(entry.processor, {})
        equal = [entry.processor]
        for processor, scores in of_kernels.items():
            both = own.keys() & scores.keys()
            if both and all(own[training] == scores[training] for training in both):
                equal.append(processor)
        return equal

    return processors


def _kernels(entry: LedgerEntry) -> object:
    trained: Any = entry.inputs.get("trained", {})
    kind = trained.get("architecture", {}).get("kind")
    precision = trained.get("training", {}).get("precision")
    return kind, precision


def on_one_processor(
    cells: Sequence[Evidence], runs: EntriesOfCells, processors: ProcessorsOfRun
) -> list[Evidence]:
    """Return cells with the runs of one processor that would give all, if one does.

    Of several it is the one that their tables show (`results`).
    """
    entries = [entry for cell in cells for entry in cell.entries]
    own = {entry.processor for entry in entries if entry.origin is None}
    here = Counter(entry.processor for entry in entries)
    tables = {cell.address.table for cell in cells}
    shown = chain.from_iterable(of for address, of in runs.items() if address.table in tables)
    in_tables = Counter(entry.processor for entry in shown)

    def rank(processor: str | None) -> tuple[bool, int, int, str]:
        return processor in own, *rank_of(processor, here, in_tables)

    candidates = set(chain.from_iterable(map(processors, entries)))
    for processor in sorted(candidates, key=rank, reverse=True):
        there = []
        for cell in cells:
            of_runs: dict[str, LedgerEntry] = {}
            for entry in cell.entries:
                if processor in processors(entry):
                    of_runs[entry.run.run] = replace(entry, processor=processor)
            if len(of_runs) == len(cell.runs):
                there.append(replace(cell, entries=tuple(of_runs.values())))
        if len(there) == len(cells):
            return there
    return list(cells)


def why_incomparable(settings: Settings, cells: Iterable[Evidence]) -> str | None:
    """Return why scores cannot be held against each other; None where they can.

    Perplexity is of one vocabulary, any other score of one test set and one metric, and all of one
    kind of processor: rounding sends a training another way. An unknown kind is one of its own.
    """
    kinds: dict[str, None] = {}
    processors: dict[str, None] = {}
    for cell in cells:
        for entry in cell.entries:
            task = entry.run.task
            if cell.measure == "perplexity":
                kind = f"{MEASURES[cell.measure].label} of {task}"
            else:
                text = settings.tasks[task].text_name
                signature = entry.scores[cell.measure].signature
                kind = f"{text} {entry.run.testset} ({entry.lines} lines), {signature}"
            kinds[kind] = None
            processors[entry.processor or "one that is not stated"] = None
    if len(kinds) > 1:
        return f"not of one kind: {' against '.join(kinds)}"
    if len(processors) > 1:
        return f"not of one processor: {' against '.join(processors)}"
    return None


def why_no_verdict(weighted: Weighted) -> str | None:
    """Return why runs are too few for a verdict, or no two systems; None where they are enough."""
    weights = defaultdict[object, float](float)
    for weight, cell in weighted:
        weights[frozenset((each.fingerprint, cell.measure) for each in cell.entries)] += weight
    if not any(abs(weight) > _ROUNDING for weight in weights.values()):
        return "the same runs on both sides: at this scale the systems are one"
    cells = [cell for _, cell in weighted]
    trainings = [cell.trainings for cell in cells]
    if min(trainings) < LEAST_RUNS:
        if max(trainings) == 1:
            return "one run each: no verdict"
        return f"{min(trainings)} on a side: a verdict needs {LEAST_RUNS} runs a side"
    for cell in cells:
        if cell.ensemble and _models_alone(cell.ensemble, cells) is None:
            return "an ensemble is one run, and no three of its models alone are compared with here"
    return None


def samples_of(weighted: Weighted, quantity: Quantity = "score") -> list[SampledRuns]:
    """Return what is drawn anew: a sample for each set of models that the cells are of.

    Of cells of the same models the sum is by model: how models differ is no part of its chance.
    """
    groups = defaultdict[object, list[tuple[float, Evidence]]](list)
    for weight, cell in weighted:
        groups[tuple(entry.models for entry in cell.entries)].append((weight, cell))
    cells = [cell for _, cell in weighted]
    samples = []
    for group in groups.values():
        scores = [weight * np.array(cell.scores(quantity)) for weight, cell in group]
        drawn: list[SetScores] = []
        for weight, cell in group:
            of_sentences = cell.drawn(quantity)
            if of_sentences is not None:
                drawn.append(weight * of_sentences)
        weight, cell = group[0]
        singles = None
        if cell.ensemble and (alone := _models_alone(cell.ensemble, cells)):
            singles = [weight * score for score in alone]
        samples.append(
            SampledRuns(
                scores=np.sum(scores, axis=0).tolist(),
                drawn=np.sum(drawn, axis=0) if len(drawn) == len(group) else None,
                singles=singles,
            )
        )
    return samples


def _models_alone(ensemble: LedgerEntry, cells: Sequence[Evidence]) -> list[float] | None:
    """Return the scores of an ensemble's models alone, where one of the cells has enough."""
    for cell in cells:
        alone: dict[str, float] = {}
        for entry in cell.entries:
            if len(entry.models) == 1:
                alone[entry.models[0]] = entry.scores[cell.measure].score
        scores = [alone[model] for model in ensemble.models if model in alone]
        if len(scores) >= LEAST_RUNS:
            return scores
    return None


@cache  # a cell stands in several comparisons
def _measures(sentences: str, measures_of: Callable[[Statistics], Measures]) -> Measures:
    return measures_of(decode_statistics(sentences, f"the ledger's sentences {sentences[:40]}"))
