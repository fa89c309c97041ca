"""The paths of the files that the workflow makes, as far as the package needs them.

The rules state the same paths as their outputs. Each name in a path, such as that of a task or a
model, may also be one of Snakemake's wildcards, such as ``{task}``.
"""

from dataclasses import dataclass
from pathlib import Path

from convs2s.config.runs import members


@dataclass(frozen=True)
class TaskFolder:
    """The paths of a task's files: corpus, vocabularies, token stores, alignment and models."""

    path: str  # the folder, such as ``results/demo_en_fr``

    def text(
        self,
        stage: str,
        part: str,
        side: str,
    ) -> str:
        """Return the file of one side of a part of the corpus.

        Args:
            stage: ``raw``, ``tok``, ``clean`` or ``truecased``.
            part: ``train``, ``valid`` or a test set.
            side: ``source`` or ``target``.
        """
        return f"{self.path}/corpus/{stage}/{part}.{side}.zst"

    def truecaser(self, side: str) -> str:
        """Return the truecaser of the ``source`` or the ``target``."""
        return f"{self.path}/corpus/truecaser.{side}.tsv"

    @property
    def pair_counts(self) -> str:
        """The table of training pairs that were read, kept and dropped, as text."""
        return f"{self.path}/corpus/counts.txt"

    def bpe_codes(self, name: str) -> str:
        """Return a file of BPE codes.

        ``name`` is ``codes`` for joint codes, or ``codes.LANG`` for the codes of one language.
        """
        return f"{self.path}/vocabulary/{name}"

    def vocabulary(self, language: str) -> str:
        """Return the vocabulary of a language."""
        return f"{self.path}/vocabulary/{language}.tsv"

    def store(self, split: str) -> str:
        """Return the token store of ``train`` or ``valid``."""
        return f"{self.path}/dataset/{split}.arrow"

    def store_description(self, split: str) -> str:
        """Return the description of a token store: its contents, and how its text was prepared."""
        return f"{self.path}/dataset/{split}.json"

    @property
    def dataset_counts(self) -> str:
        """The counts of pairs and unknown tokens in the token stores, and of lines trained on.

        A table for people, ``counts.txt``, is beside it.
        """
        return f"{self.path}/dataset/counts.json"

    @property
    def dictionary(self) -> str:
        """The dictionary from the word alignment, which replaces unknown words."""
        return f"{self.path}/alignment/dictionary.tsv"

    def run(self, model: str, run: str) -> str:
        """Return the folder of a run of a model."""
        return f"{self.path}/models/{model}/{run}"

    def model(self, model: str, run: str) -> str:
        """Return the model file of a run."""
        return f"{self.run(model, run)}/model.safetensors"

    def models(self, model: str, run: str) -> list[str]:
        """Return the model files of a run: one file, or those of an ensemble."""
        return [self.model(model, member) for member in members(run)]

    def report(self, metric: str) -> str:
        """Return the report of the headline: ``bleu.txt``, or ``rouge.txt`` for summaries."""
        return f"{self.path}/{metric}.txt"

    @property
    def examples(self) -> str:
        """A few translations with their sources and references."""
        return f"{self.path}/examples.txt"


def results_of(file: Path) -> Path:
    """Return the results folder of a file in the folder of a run (`TaskFolder.run`).

    It is the fifth folder above the file, ``RESULTS/TASK/models/MODEL/RUN/FILE``, or the root if
    the file has fewer folders above it.
    """
    return _folder_above(file, 5)


def task_of(file: Path) -> Path:
    """Return the folder of the task of a file in the folder of a run, as `results_of` does."""
    return _folder_above(file, 4)


def _folder_above(file: Path, levels: int) -> Path:
    parents = file.absolute().parents
    return parents[min(levels, len(parents)) - 1]


@dataclass(frozen=True)
class Layout:
    """The folders of a scale."""

    results: str  # everything that the workflow makes
    downloads: str  # files from elsewhere

    @property
    def mirror(self) -> str:
        """The miniature mirror, if the scale generates one."""
        return f"{self.results}/archives"

    def task(self, name: str) -> TaskFolder:
        """Return the folder of a task."""
        return TaskFolder(f"{self.results}/{name}")

    def paper(self, file: str) -> str:
        """Return a file about the papers: a table, a figure, the ledger of runs, the report."""
        return f"{self.results}/paper/{file}"
