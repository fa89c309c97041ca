"""config/scales/NAME.yaml: what stands in for the paper's tasks, models, test sets and runs."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from convs2s.config.architecture import NetworkSettings
from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty
from convs2s.config.model import Recipe
from convs2s.config.paper import Row, Table
from convs2s.config.runs import RunName, of_at_most
from convs2s.config.section import (
    DistinctItems,
    Expecting,
    FileName,
    Items,
    PositiveInt,
    Probability,
    Section,
    Text,
    Values,
)
from convs2s.config.task import Headline, Task


def _folder(path: str) -> str:
    """Return a path without / at its end: for results//mine Snakemake finds no rule."""
    try:
        return str(Path(path).expanduser())
    except RuntimeError:
        raise PydanticCustomError("home", "expected ~NAME of a user that is known here") from None


_Folder = Annotated[FileName, AfterValidator(_folder)]


class Shrinking(Section):
    """How the small version of a convolutional model differs: in widths, dropout and recipe.

    Layers, kernels, attention and positions stay: rows of a table differ in what the paper's do.
    """

    prefix: Annotated[
        str, Expecting("expected a name of small letters and digits", pattern="^[a-z][a-z0-9_]*$")
    ]
    """The small version of NAME is called PREFIX_NAME."""
    divide_by: Annotated[int, Field(ge=2)]
    """What the widths of blocks and embeddings are divided by."""
    dropout: Probability | None = None
    """Dropout of every small version; null leaves each model its own. A narrow and deep network
    that sees each sentence once or twice learns faster without."""
    training: Recipe
    """The training recipe of every small version."""
    keep_recipe: DistinctItems[str] = ()
    """Models that keep recipe and dropout, not threads: all that differ in the recipe alone."""

    def entry(self, name: str, architecture: NetworkSettings) -> Values:
        """Return the small version of a model as config/models.yaml would state it."""
        network = architecture.model_dump(mode="json")
        for part in (network, *network["encoder"], *network["decoder"]):
            for key in part.keys() & {"embedding", "output_embedding", "width"}:
                part[key] = max(1, part[key] // self.divide_by)
        if name in self.keep_recipe:
            recipe: Values = {"threads": self.training.threads}
        else:
            recipe = self.training.model_dump(mode="json")
            if self.dropout is not None:
                network["dropout"] = self.dropout
        return {
            "extends": name,
            "description": f"{name} with 1/{self.divide_by} of its widths",
            "architecture": network,
            "training": recipe,
        }


class LeftOut(Section):
    """Rows that the tables of a scale do not have, as nothing is run for them."""

    tasks: DistinctItems[str] = ()
    """Tasks of the paper: there are no rows on one of these."""
    models: DistinctItems[str] = ()
    """Models of the paper: there are no rows of one of these."""
    because: Text
    """The reason, which stands above the tables that lack them."""


class OwnNBest(Section):
    """The n-best list of a model of this project, in the place of another system's."""

    model: str
    """Model of config/models.yaml."""
    run: RunName = "seed1"
    """Its run: seed1, ..., or ensemble2."""
    decoding: str
    """Decoding of config/decodings.yaml, which says how long the list is."""

    def __str__(self) -> str:
        return f"{self.model} {self.run}, {self.decoding}"


class Scale(Section):
    """What stands in for the paper's data and models where there is no cluster."""

    description: str
    """One line that says what the scale is for."""
    results_dir: _Folder
    """Folder of everything that runs at this scale make; every scale has its own."""
    downloads_dir: _Folder
    """Folder of the downloads, kept between runs."""
    generated_mirror: bool = False
    """Whether every download comes from the miniature mirror (convs2s mirror), which the workflow
    writes below results_dir, with its own checksums; false: from config.yaml's mirrors or hosts."""
    stand_in: str | None = None
    """What the data really is, above every score and table as STAND-IN DATA; null: the paper's."""
    tasks: dict[str, str] = {}
    """Task of the paper -> the task that stands in for it. A task not listed stands for itself;
    where some are listed, it has no stand-in in the papers' tables."""
    models: dict[str, str] = {}
    """Model of the paper -> the model that stands in for it. On stand-in data, a model not listed
    has no stand-in: its cells stay empty, as the rows of a table that differ in the model alone
    would otherwise show one and the same run."""
    shrink: Shrinking | None = None
    """Gives each convolutional model of the paper that models does not list a small version of its
    own, which stands in for it; null: none has one."""
    left_out: Items[LeftOut] = ()
    """Rows that the paper's tables do not have at this scale."""
    without: DistinctItems[str] = ()
    """Tables of this project that are not made at this scale."""
    tests: dict[str, str] = {}
    """Test set of the paper -> the test set that stands in for it, in tables and headlines; one
    that tunes a length penalty may be valid. A test set not listed stands for itself."""
    phrases: dict[str, str] = {}
    """Phrases of config/phrases.yaml -> their stand-ins; others stand for themselves."""
    example_line: PositiveInt | None = None
    """Line, from 1, of the test set of figure 3 that the figure shows instead of the paper's
    sentence; null: the paper's sentence."""
    n_best: OwnNBest | None = None
    """Whose list stands in for those of other systems, a task's own n_best; null: none does."""
    seeds: PositiveInt | None = None
    """The most seeds that one cell of a table may use; null sets no limit."""
    seeds_of: dict[str, PositiveInt] = {}
    """Table of the paper -> the most seeds of its cells, in place of seeds."""
    ensembles: dict[RunName, RunName] = {}
    """Ensemble of the paper -> the run that stands in for it, whatever seeds says. An ensemble not
    listed has no more models than there are seeds."""

    def downloads_below(self, results: str) -> str:
        """Return the downloads' folder where the results go to another one: in there, if it was."""
        below = self.downloads_dir.removeprefix(f"{self.results_dir}/")
        return self.downloads_dir if below == self.downloads_dir else f"{results}/{below}"

    def task_for(self, name: str) -> str:
        """Return the task that stands in for one of the paper's."""
        return self.tasks.get(name, name)

    def has_task(self, name: str | None) -> bool:
        """Return whether rows on a task of the paper are run: it has a stand-in, if any has one."""
        return not self.tasks or name in self.tasks

    def model_for(self, name: str) -> str | None:
        """Return the model that stands in for one of the paper's; None where none does."""
        return self.models.get(name, name if self.stand_in is None else None)

    def why_left_out(self, row: Row) -> str | None:
        """Return why the scale's tables lack a row of the paper's; None where they have it."""
        if row.kind != "ours":
            return None
        for left_out in self.left_out:
            if row.model in left_out.models or row.task in left_out.tasks:
                return left_out.because
        return None

    def shown_rows(self, table: Table) -> list[int]:
        """Return which rows of a table the scale has, as indices from 0."""
        return [number for number, row in enumerate(table.rows) if not self.why_left_out(row)]

    def to_shrink(self, tables: Iterable[Table]) -> list[str]:
        """Return the models that the papers' rows are compared with and that need a stand-in."""
        names: dict[str, None] = {}
        for row in chain.from_iterable(table.rows for table in tables):
            if row.kind == "ours" and row.model and not self.why_left_out(row):
                names[row.model] = None
        return [name for name in names if name not in self.models]

    def testset_for(self, name: str) -> str:
        """Return the test set that stands in for one of the paper's."""
        return self.tests.get(name, name)

    def phrases_for(self, name: str) -> str:
        """Return the phrases that stand in for some."""
        return self.phrases.get(name, name)

    def runs_for(self, names: Sequence[str], table: str) -> list[str]:
        """Return the runs of a table's cell with no more seeds than the scale allows.

        Of seed1, seed2, ... the first ones are kept; an ensemble is made of fewer models.
        """
        seeds = self.seeds_of.get(table, self.seeds)
        fewer = [self.ensembles.get(name) or of_at_most(name, seeds) for name in names]
        return list(dict.fromkeys(fewer))[:seeds]

    def headline_of(self, task: Task) -> Headline:
        """Return what a task's headline rests on at this scale: stand-ins, and no more seeds."""
        headline = task.headline
        tests = []
        for name in task.headline_tests():
            stand_in = self.testset_for(name)
            tests.append(stand_in if stand_in in task.corpus.tests else name)
        return headline.model_copy(
            update={
                "model": self.models.get(headline.model, headline.model),
                "seeds": headline.seeds[: self.seeds],
                "tests": tuple(dict.fromkeys(tests)),
            }
        )

    def development_set(self, task: Task, decoding: DecodingSettings) -> str | None:
        """Return the set that a decoding's length penalty is tuned on; None where it is stated."""
        if not isinstance(decoding.length_penalty, TunedLengthPenalty):
            return None
        name = decoding.length_penalty.tuned_on
        return name if name in task.development_sets() else self.testset_for(name)
