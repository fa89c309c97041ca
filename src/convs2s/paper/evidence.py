"""The evidence for the cells that a claim names: scores and sentence statistics in the ledger."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from typing import Any, Literal

import numpy as np

from convs2s.config.claims import CellName, row_index
from convs2s.config.measures import MEASURES
from convs2s.config.paper import printed_number
from convs2s.config.runs import members
from convs2s.config.settings import Settings
from convs2s.paper.cells import CellAddress, stand_ins
from convs2s.paper.ledger import LedgerEntry
from convs2s.paper.results import rank_of
from convs2s.scoring.bleu import Statistics, decode_statistics
from convs2s.scoring.significance import (
    LEAST_RUNS,
    Measures,
    Pool,
    SampledRuns,
    SetScores,
    drawn_measures,
    measured,
)

LOWER_IS_BETTER = (
    "perplexity",
    "test_perplexity",
    "training_hours",
    "seconds_cpu",
    "seconds_cuda",
)
"""Measures whose lower value is better. For all other measures the higher value is better."""

LEAST_RUNS_IN_WORDS = {3: "three"}[LEAST_RUNS]
"""``LEAST_RUNS`` as a word, for texts. If that number changes, add its word here."""

EntriesOfCells = Mapping[CellAddress, Sequence[LedgerEntry]]
"""Address of a cell -> the ledger entries of the runs that the cell shows."""

Kernels = tuple[str | None, str | None]
"""Kind of network and precision of a training, which decide what kernels it uses."""

EqualProcessors = Mapping[tuple[Kernels, str | None], set[str | None]]
"""Kernels and processor -> the processors that give the same numbers, including itself.

A processor that has made no training with these kernels is not in the mapping.
"""

_ROUNDING = 1e-9  # a sum of weights whose absolute value is below this counts as zero

Quantity = Literal["score", "without_brevity", "length_ratio"]
"""A number of a run: its score by the cell's measure, or one computed from its sentences.

``without_brevity`` is BLEU without the brevity penalty; ``length_ratio`` is the number of words of
the translations, divided by that of the references.
"""


@dataclass(frozen=True)
class Evidence:
    """All that the paper and the ledger say about one cell."""

    address: CellAddress
    label: str  # the name of the cell in the text of a comparison
    heading: str  # the heading of the cell's column
    # Empty if the cell only has a printed value, and its column names no measure.
    measure: str
    printed: float | None  # the paper's number; None if the paper prints none
    # Whether the row cites the results of others, which are not computed here.
    is_cited: bool
    entries: tuple[LedgerEntry, ...]  # the runs that have a score, sorted by name
    missing: str | None  # the reason why there is no score; None if there is one
    text: str | None  # the name of the text of the runs' task; None without a score
    # The variance between runs, pooled over networks that were trained alike (`pools`).
    pool: Pool | None = None

    @property
    def trainings(self) -> int:
        """The number of models that the runs use. Each model of an ensemble counts."""
        return sum(len(members(run)) for run in self.runs)

    @property
    def runs(self) -> list[str]:
        """The names of the runs. A run that several processors have made is listed once."""
        return list(dict.fromkeys(entry.run.run for entry in self.entries))

    @property
    def ensemble(self) -> LedgerEntry | None:
        """The entry of the only run if that run is an ensemble; else None."""
        if len(self.runs) == 1 and self.trainings > 1:
            return self.entries[0]
        return None

    @property
    def runs_in_words(self) -> str:
        """The names of ensembles, or the number of runs if there are none; "printed" if cited."""
        if self.is_cited:
            return "printed"
        ensembles = [run for run in self.runs if run.startswith("ensemble")]
        return ", ".join(ensembles) or str(len(self.runs))

    def scores(self, quantity: Quantity = "score") -> list[float]:
        """Return a quantity of each run, on the test set as it is.

        For a quantity other than the score, runs without sentences in the ledger are left out.
        """
        if quantity == "score":
            return [entry.scores[self.measure].score for entry in self.entries]
        return [array.item() for array in self._from_sentences(quantity, measured)]

    def drawn(self, quantity: Quantity) -> SetScores | None:
        """Return a quantity of each run on resampled test sets, of shape (runs, draws).

        Return None unless the ledger has the sentences of every run.
        """
        arrays = self._from_sentences(quantity, drawn_measures)
        return np.stack(arrays) if len(arrays) == len(self.entries) else None

    def _from_sentences(
        self, quantity: Quantity, compute: Callable[[Statistics], Measures]
    ) -> list[SetScores]:
        """Compute a quantity of each run whose sentences are in the ledger."""
        field: str = quantity  # the name of the quantity in `Measures`
        # Only BLEU and the length ratio are scores that follow from sentences.
        if quantity == "score":
            field = "length_ratio" if self.measure == "length_ratio" else "bleu"
        return [
            getattr(_measures(encoded, compute), field)
            for encoded in self.sentences(quantity)
        ]

    def sentences(self, quantity: Quantity) -> list[str]:
        """Return the encoded sentence statistics of the runs that have them.

        They are the statistics of the cell's measure, with two exceptions. For detokenized BLEU
        they are those of tokenized BLEU, because the ledger has no others. For a length ratio they
        are those of any tokenized BLEU, because all of these count the same words.
        """
        measure = self.measure.replace("detokenized", "tokenized")
        is_length = "length_ratio" in (quantity, self.measure)
        found = []
        for entry in self.entries:
            if is_length and entry.sentences:
                found.append(next(iter(entry.sentences.values())))
            elif measure in entry.sentences:
                found.append(entry.sentences[measure])
        return found

    @property
    def length_ratio(self) -> float | None:
        """The mean length ratio of the runs; None unless the ledger has every run's sentences."""
        ratios = self.scores("length_ratio")
        if not ratios or len(ratios) < len(self.entries):
            return None
        return float(np.mean(ratios))


Weighted = Sequence[tuple[float, Evidence]]
"""Weights and cells whose weighted sum is tested.

A cell that the claim says is worse has a negative weight. If lower values of the measure are
better, all weights change their sign.
"""


def evidence(
    settings: Settings,
    name: CellName,
    entries: EntriesOfCells,
) -> Evidence:
    """Return the evidence for a cell that a claim names.

    A cited cell has no runs. Its printed value counts, but not on stand-in data.
    """
    table = settings.tables[name.table]
    index = row_index(name, settings.tables, "config/claims.yaml")
    row = table.rows[index]
    column = next(column for column in table.columns if column.key == name.column)
    address = CellAddress(name.table, index, name.column)
    is_cited = row.kind == "cited"
    scored = sorted(entries.get(address, ()), key=lambda entry: entry.run.run)
    text = settings.tasks[scored[0].run.task].text_name if scored else None
    missing = None
    if is_cited:
        if settings.scale.stand_in:
            missing = "a printed value is of the paper's data"
    elif not scored:
        # ``settings.paper`` lacks the tables that have no row at this scale.
        if name.table not in settings.paper or settings.scale.why_left_out(row):
            missing = "left out at this scale"
        elif stand_ins(settings.scale, row) is None:
            missing = "no stand-in"
        else:
            missing = "not run"
    label = [name.table, row.group, repr(row.system)]
    if len(table.columns) > 1:
        label.append(column.name)
    return Evidence(
        address=address,
        label=" ".join(filter(None, label)),
        heading=column.name,
        measure=row.measure_in(column) or "",
        printed=printed_number(row, name.column),
        is_cited=is_cited,
        entries=tuple(scored),
        missing=missing,
        text=text,
    )


TrainedAlike = tuple[object, ...]
"""What cells must have in common so that their variances are pooled (`trained_alike`)."""


def trained_alike(entries: Iterable[LedgerEntry], measure: str) -> TrainedAlike | None:
    """Return the measure, the test set, the search and the training recipe of a cell's runs.

    Return None if the runs differ in one of these, or if a run is an ensemble, has no score, or has
    no recipe in the ledger.
    """
    found = set()
    for entry in entries:
        trained: Any = entry.inputs.get("trained", {})
        score = entry.scores.get(measure)
        is_ensemble = len(entry.models) > 1
        if is_ensemble or score is None or "training" not in trained:
            return None
        run = entry.run
        recipe = json.dumps(trained["training"], sort_keys=True)
        scored_on = (run.task, run.testset, run.decoding, entry.lines, score.signature)
        found.add((measure, *scored_on, recipe))
    return found.pop() if len(found) == 1 else None


def pools(settings: Settings, entries: EntriesOfCells) -> dict[TrainedAlike, Pool]:
    """Return the pooled variance of each set of networks that were trained alike.

    The networks of a set differ only in their architecture. A network that several cells show
    counts once.
    """
    # What is alike -> the names of a network's models -> the scores of these models.
    networks = defaultdict[TrainedAlike, dict[object, list[float]]](dict)
    for address, runs in entries.items():
        table = settings.tables[address.table]
        row = table.rows[address.row]
        column = next(one for one in table.columns if one.key == address.column)
        measure = row.measure_in(column) or ""
        if alike := trained_alike(runs, measure):
            scores = {entry.models[0]: entry.scores[measure].score for entry in runs}
            networks[alike][frozenset(scores)] = list(scores.values())
    found = {}
    for alike, scores_of_networks in networks.items():
        if pool := Pool.of(list(scores_of_networks.values())):
            found[alike] = pool
    return found


def equal_processors(runs: EntriesOfCells) -> EqualProcessors:
    """Return the processors that give the same numbers, for each processor and kind of training.

    Two processors are equal if there are trainings that both have made, and each of these has the
    same perplexity on both, to the last digit. This is decided separately for each kind of network
    and precision. It is enough to compare perplexities, because a difference in rounding anywhere
    in a training changes most digits of its perplexity.
    """
    # Kernels -> processor -> fingerprint of a training -> its perplexity.
    perplexities: dict[Kernels, dict[str | None, dict[str, float]]] = {}
    for entry in chain.from_iterable(runs.values()):
        score = entry.scores.get("perplexity")
        if entry.processor and score:
            by_processor = perplexities.setdefault(_kernels(entry), {})
            trained = by_processor.setdefault(entry.processor, {})
            trained[entry.fingerprint] = score.score
    equal = defaultdict[tuple[Kernels, str | None], set[str | None]](set)
    for kernels, by_processor in perplexities.items():
        for one, other in product(by_processor, repeat=2):
            on_one = by_processor[one]  # fingerprint -> perplexity
            on_other = by_processor[other]
            common = on_one.keys() & on_other.keys()
            if common and all(on_one[run] == on_other[run] for run in common):
                equal[kernels, one].add(other)
    return equal


def _kernels(entry: LedgerEntry) -> Kernels:
    """Return the kind of network and the precision of a run."""
    trained: Any = entry.inputs.get("trained", {})
    kind = trained.get("architecture", {}).get("kind")
    precision = trained.get("training", {}).get("precision")
    return kind, precision


def on_one_processor(
    cells: Sequence[Evidence],
    runs: EntriesOfCells,
    equal: EqualProcessors,
) -> list[Evidence]:
    """Return the cells with the runs of one processor only, if one has the runs of all cells.

    A run counts for the processor that made it and for all equal processors. If several processors
    have the runs of all cells, a processor that has made runs here is preferred to one whose runs
    are all from a published ledger. Of several such processors, the one that the tables prefer
    (`results.rank_of`) is chosen. All entries of the returned cells name the chosen processor. If
    no processor has the runs of all cells, the cells are returned unchanged.
    """
    entries = [entry for cell in cells for entry in cell.entries]
    made_here = {entry.processor for entry in entries if entry.origin is None}
    counts_in_cells = Counter(entry.processor for entry in entries)
    tables = {cell.address.table for cell in cells}
    counts_in_tables = Counter[str | None]()
    for address, entries_of_cell in runs.items():
        if address.table in tables:
            counts_in_tables.update(entry.processor for entry in entries_of_cell)

    def rank(processor: str | None) -> tuple[bool, int, int, str]:
        """Return the sort key of a processor; the highest is preferred."""
        counts = rank_of(processor, counts_in_cells, counts_in_tables)
        return processor in made_here, *counts

    def processors_of(entry: LedgerEntry) -> set[str | None]:
        """Return the processors that give the same numbers as the processor of an entry."""
        own = entry.processor
        return equal.get((_kernels(entry), own), {own})

    candidates = set(chain.from_iterable(map(processors_of, entries)))
    for processor in sorted(candidates, key=rank, reverse=True):
        complete = []  # the cells whose runs this processor has
        for cell in cells:
            run_entries: dict[str, LedgerEntry] = {}
            for entry in cell.entries:
                # A run may have entries of several equal processors. Their scores are equal, but
                # measured times may differ. The last entry counts.
                if processor in processors_of(entry):
                    run_entries[entry.run.run] = replace(entry, processor=processor)
            if len(run_entries) == len(cell.runs):
                complete.append(replace(cell, entries=tuple(run_entries.values())))
        if len(complete) == len(cells):
            return complete
    return list(cells)


def why_incomparable(cells: Iterable[Evidence]) -> str | None:
    """Return why the scores of cells cannot be compared; None if they can.

    Perplexities are comparable within one task, because they depend on its vocabulary. Other scores
    are comparable if they have the same text, test set, number of lines and signature of the
    metric. All runs must come from one processor, because another one rounds differently, and so
    gives another training. Runs without a recorded processor count as runs of one more processor.
    """
    # Two ordered sets.
    kinds: dict[str, None] = {}
    processors: dict[str, None] = {}
    for cell in cells:
        for entry in cell.entries:
            if cell.measure == "perplexity":
                kind = f"{MEASURES[cell.measure].label} of {entry.run.task}"
            else:
                test_set = f"{cell.text} {entry.run.testset} ({entry.lines} lines)"
                kind = f"{test_set}, {entry.scores[cell.measure].signature}"
            kinds[kind] = None
            processors[entry.processor or "one that is not stated"] = None
    if len(kinds) > 1:
        return f"not of one kind: {' against '.join(kinds)}"
    if len(processors) > 1:
        return f"not of one processor: {' against '.join(processors)}"
    return None


def why_no_verdict(weighted: Weighted) -> str | None:
    """Return why there can be no verdict; None if there can be one.

    There is no verdict if both sides have the same runs, if a side has too few, or if a side is an
    ensemble whose variance between runs cannot be estimated. ``weighted`` must not contain cited
    cells, which have no runs.
    """
    # Cells with the same runs and measure are one system, so their weights are added up. If all
    # sums are zero, the two sides are the same.
    weights = defaultdict[object, float](float)
    for weight, cell in weighted:
        system = frozenset((entry.fingerprint, cell.measure) for entry in cell.entries)
        weights[system] += weight
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
            return (
                "an ensemble is one run: its variance between runs is unknown, because no compared "
                f"cell has {LEAST_RUNS_IN_WORDS} of its models alone"
            )
    return None


def samples_of(weighted: Weighted, quantity: Quantity = "score") -> list[SampledRuns]:
    """Return a sample for each set of models: the weighted sum of the scores of its cells.

    Cells of the same models, such as two decodings, are added up model by model. Their scores share
    a part of the variance between models. In the difference between the cells, this part cancels
    out.
    """
    # Cells form a group if their runs have the same models in the same order. The entries of a cell
    # are sorted by run, so the scores of a group can be added up element by element.
    groups = defaultdict[object, list[tuple[float, Evidence]]](list)
    for weight, cell in weighted:
        models_of_runs = tuple(entry.models for entry in cell.entries)
        groups[models_of_runs].append((weight, cell))
    cells = [cell for _, cell in weighted]
    samples = []
    for group in groups.values():
        scores = []
        drawn = []
        for weight, cell in group:
            scores.append(weight * np.array(cell.scores(quantity)))
            drawn_scores = cell.drawn(quantity)
            if drawn_scores is not None:
                drawn.append(weight * drawn_scores)
        # The variance of an ensemble is estimated from the scores of its single models. These
        # scores are multiplied by the weight of the group's first cell.
        singles = None
        first_weight, first_cell = group[0]
        if first_cell.ensemble:
            single_scores = _models_alone(first_cell.ensemble, cells)
            if single_scores:
                singles = [first_weight * score for score in single_scores]
        # A pooled variance is that of the scores of one cell. The difference between cells of the
        # same models, such as two searches, varies less.
        is_pooled = len(group) == 1 and quantity == "score"
        samples.append(
            SampledRuns(
                scores=np.sum(scores, axis=0).tolist(),
                drawn=np.sum(drawn, axis=0) if len(drawn) == len(group) else None,
                singles=singles,
                pool=first_cell.pool if is_pooled else None,
                weight=first_weight,
            )
        )
    return samples


def _models_alone(
    ensemble: LedgerEntry, cells: Sequence[Evidence]
) -> list[float] | None:
    """Return the scores that single models of an ensemble have in one of the cells.

    The first cell that has at least ``LEAST_RUNS`` of these models is used. If no cell has so many,
    return None.
    """
    for cell in cells:
        scores_by_model: dict[str, float] = {}
        for entry in cell.entries:
            if len(entry.models) == 1:
                scores_by_model[entry.models[0]] = entry.scores[cell.measure].score
        scores = [
            scores_by_model[model]
            for model in ensemble.models
            if model in scores_by_model
        ]
        if len(scores) >= LEAST_RUNS:
            return scores
    return None


@cache  # claims name many cells several times
def _measures(encoded: str, compute: Callable[[Statistics], Measures]) -> Measures:
    """Decode sentence statistics of the ledger and compute measures from them."""
    return compute(decode_statistics(encoded, f"the ledger's sentences {encoded[:40]}"))
