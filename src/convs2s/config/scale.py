"""config/scales/NAME.yaml: stand-ins for the paper's tasks, models, test sets and runs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from convs2s.config.architecture import NetworkSettings
from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty
from convs2s.config.model import Recipe
from convs2s.config.paper import Row, Table
from convs2s.config.runs import RunName, limited_ensemble
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
    """Return a path with ~ expanded, without a / at its end and without repeated slashes.

    With repeated slashes, as in results//mine, Snakemake would find no rule for a file.
    """
    try:
        return str(Path(path).expanduser())
    except RuntimeError:
        raise PydanticCustomError(
            "home", "expected ~NAME with a user of this machine"
        ) from None


_Folder = Annotated[FileName, AfterValidator(_folder)]


class Shrinking(Section):
    """How the small version of a convolutional model differs: in widths, dropout and recipe.

    It has the layers, kernels, attention and positions of the model. The rows of a table therefore
    differ in the same things as the paper's rows.
    """

    prefix: Annotated[
        str,
        Expecting(
            "expected a name of lower-case letters, digits and _",
            pattern="^[a-z][a-z0-9_]*$",
        ),
    ]
    """The small version of NAME is called PREFIX_NAME."""
    divide_by: Annotated[int, Field(ge=2)]
    """The widths of blocks and embeddings are divided by this number."""
    dropout: Probability | None = None
    """Dropout of every small version; null keeps the dropout of each model. A narrow and deep
    network that sees each sentence only once or twice learns faster without dropout."""
    training: Recipe
    """The training recipe of every small version."""
    keep_recipe: DistinctItems[str] = ()
    """Models whose small versions keep the model's dropout and its recipe, except threads. Name
    every model that differs from another one only in its recipe; otherwise their small versions
    would be the same."""

    def entry(self, name: str, architecture: NetworkSettings) -> Values:
        """Return the small version of a model as config/models.yaml would state it."""
        network = architecture.model_dump(mode="json")
        stacks = [*network["encoder"], *network["decoder"]]
        for values in (network, *stacks):
            for key in ("embedding", "output_embedding", "width"):
                if key in values:
                    values[key] = max(1, values[key] // self.divide_by)
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
    """Rows that are left out of the tables at a scale. Nothing is run for them."""

    tasks: DistinctItems[str] = ()
    """Tasks of the paper whose rows are left out."""
    models: DistinctItems[str] = ()
    """Models of the paper whose rows are left out."""
    because: Text
    """The reason, which is printed above each table that lacks such a row."""


class OwnNBest(Section):
    """The n-best list of one of this project's models, in place of another system's list."""

    model: str
    """Model of config/models.yaml."""
    run: RunName = "seed1"
    """Run of the model that makes the list, such as seed1 or ensemble2."""
    decoding: str
    """Decoding of config/decodings.yaml, which sets the number of hypotheses in the list."""

    def __str__(self) -> str:
        return f"{self.model} {self.run}, {self.decoding}"


class Scale(Section):
    """The stand-ins for the paper's data and models, for machines that cannot run the paper's."""

    description: str
    """One line that says what the scale runs and on which machine."""
    results_dir: _Folder
    """Folder of all results of this scale. Each scale needs a different folder."""
    downloads_dir: _Folder
    """Folder of the downloads, which are kept from one run of the workflow to the next."""
    generated_mirror: bool = False
    """Whether all downloads come from the miniature mirror (`convs2s mirror`), which the workflow
    writes below results_dir together with its checksums. false: they come from the mirrors that
    config.yaml names, or from the original hosts."""
    stand_in: str | None = None
    """What the data is, if it is not the paper's. Every score and table shows this text after the
    words STAND-IN DATA. null: the data is the paper's."""
    tasks: dict[str, str] = {}
    """Task of the paper -> the task that stands in for it. If the mapping is empty, the papers'
    tables run the paper's tasks. Otherwise, rows on a task that is not listed are not run."""
    models: dict[str, str] = {}
    """Model of the paper -> the model that stands in for it. If stand_in is null, a model that is
    not listed is used itself. On stand-in data, such a model has no stand-in and its cells stay
    empty, because rows that differ only in the model would otherwise show the same run."""
    shrink: Shrinking | None = None
    """How to make a small version of each convolutional model of the papers' tables that models
    does not list. The small version stands in for the model. null: there are no small versions."""
    left_out: Items[LeftOut] = ()
    """Rows of the papers' tables that are left out at this scale."""
    without: DistinctItems[str] = ()
    """Tables of config/paper.yaml that are not made at this scale."""
    tests: dict[str, str] = {}
    """Test set of the paper -> the test set that stands in for it, in tables and headlines. The
    stand-in of a set on which a length penalty is tuned may be valid. A test set that is not listed
    is used itself."""
    phrases: dict[str, str] = {}
    """Phrases of config/phrases.yaml -> the phrases that stand in for them. Phrases that are not
    listed are used themselves."""
    example_line: PositiveInt | None = None
    """Number of the line, from 1, of figure 3's test set that the figure shows instead of the
    paper's sentence; null: the paper's sentence."""
    n_best: OwnNBest | None = None
    """The model whose n-best list stands in for the lists of other systems (n_best of a task);
    null: there is no stand-in."""
    seeds: PositiveInt | None = None
    """Maximum number of seeds that a headline or one cell of a table uses; null sets no limit."""
    seeds_of: dict[str, PositiveInt] = {}
    """Table of config/paper.yaml -> maximum number of seeds for its cells, in place of seeds."""
    ensembles: dict[RunName, RunName] = {}
    """Ensemble of the paper -> the run that stands in for it, even if the run has more models than
    seeds allows. An ensemble that is not listed is made of at most as many models as seeds
    allows."""

    def downloads_below(self, results: str) -> str:
        """Return the downloads' folder if the results are written into the folder ``results``.

        Downloads below ``results_dir`` move with it; a folder elsewhere stays where it is.
        """
        results_dir = f"{self.results_dir}/"
        if not self.downloads_dir.startswith(results_dir):
            return self.downloads_dir
        return f"{results}/{self.downloads_dir.removeprefix(results_dir)}"

    def task_for(self, name: str) -> str | None:
        """Return the task that stands in for a task of the paper; None if there is no stand-in.

        If the scale lists no tasks, every task is used itself.
        """
        return self.tasks.get(name) if self.tasks else name

    def model_for(self, name: str) -> str | None:
        """Return the model that stands in for a model of the paper; None if there is no stand-in.

        On the paper's data, a model that is not listed is used itself.
        """
        return self.models.get(name, name if self.stand_in is None else None)

    def why_left_out(self, row: Row) -> str | None:
        """Return why a row of the paper's tables is left out at this scale; None if it is not."""
        if row.kind != "ours":
            return None
        for left_out in self.left_out:
            if row.model in left_out.models or row.task in left_out.tasks:
                return left_out.because
        return None

    def shown_rows(self, table: Table) -> list[int]:
        """Return the indices, from 0, of a table's rows that are not left out at this scale."""
        return [
            index for index, row in enumerate(table.rows) if not self.why_left_out(row)
        ]

    def to_shrink(self, tables: Iterable[Table]) -> list[str]:
        """Return the models of the rows that run at this scale, except the keys of ``models``.

        Each model is named once, in the order of the tables.
        """
        names = []
        for table in tables:
            for row in table.rows:
                is_run = row.kind == "ours" and not self.why_left_out(row)
                if is_run and row.model and row.model not in self.models:
                    names.append(row.model)
        return list(dict.fromkeys(names))

    def testset_for(self, name: str) -> str:
        """Return the test set that stands in for a test set of the paper."""
        return self.tests.get(name, name)

    def phrases_for(self, name: str) -> str:
        """Return the name of the phrases that stand in for the phrases ``name``."""
        return self.phrases.get(name, name)

    def runs_for(self, names: Sequence[str], table: str) -> list[str]:
        """Return the runs of a table's cell with no more seeds than the scale allows.

        The first of the runs seed1, seed2, ... are kept. An ensemble is replaced by its stand-in
        or, if it has none, by an ensemble of at most as many models as there may be seeds.
        """
        seeds = self.seeds_of.get(table, self.seeds)
        runs = (
            self.ensembles.get(name) or limited_ensemble(name, seeds) for name in names
        )
        # Several ensembles may have become the same run.
        return list(dict.fromkeys(runs))[:seeds]

    def headline_of(self, task: Task) -> Headline:
        """Return a task's headline at this scale.

        The model and the test sets are replaced by their stand-ins, but a test set stays if its
        stand-in is not a test set of the task. There are at most as many seeds as the scale allows.
        """
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
        """Return the set on which a decoding's length penalty is tuned; None if it is not tuned.

        It is the set that the decoding names or, if the task does not have this set, its stand-in.
        """
        if not isinstance(decoding.length_penalty, TunedLengthPenalty):
            return None
        name = decoding.length_penalty.tuned_on
        return name if name in task.development_sets() else self.testset_for(name)
