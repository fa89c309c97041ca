"""The paths of those files of the workflow that the package needs.

The rules use these paths as their outputs. So each name in a path, such as that of a task or a
model, may also be a wildcard of Snakemake, such as ``{task}``.
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
        """Return the file with the sentences of one side of a part of the corpus.

        Args:
            stage: ``raw``, ``tok``, ``clean`` or ``truecased``.
            part: ``train``, ``valid``, a test set, or ``TEST.referenceN``, its further reference N.
            side: ``source`` or ``target``.
        """
        return f"{self.path}/corpus/{stage}/{part}.{side}.zst"

    def truecaser(self, side: str) -> str:
        """Return the truecaser of the ``source`` or the ``target``."""
        return f"{self.path}/corpus/truecaser.{side}.tsv"

    @property
    def pair_counts(self) -> str:
        """The table, as text, of how many training pairs were read, kept and dropped."""
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
        """Return the token store of a split, ``train`` or ``valid``."""
        return f"{self.path}/dataset/{split}.arrow"

    def store_description(self, split: str) -> str:
        """Return the description of a token store: its content, and how its text was prepared."""
        return f"{self.path}/dataset/{split}.json"

    @property
    def dataset_counts(self) -> str:
        """Counts of the pairs and unknown tokens in the stores, and of test lines in training text.

        The file ``counts.txt`` beside it shows these counts as a table.
        """
        return f"{self.path}/dataset/counts.json"

    @property
    def dictionary(self) -> str:
        """The dictionary that replaces unknown words, made from the word alignment."""
        return f"{self.path}/alignment/dictionary.tsv"

    def run(self, model: str, run: str) -> str:
        """Return the folder of a run of a model."""
        return f"{self.path}/models/{model}/{run}"

    def model(self, model: str, run: str) -> str:
        """Return the model file of a run."""
        return f"{self.run(model, run)}/model.safetensors"

    def models(self, model: str, run: str) -> list[str]:
        """Return the model files of a run: one file, or those of the members of an ensemble."""
        return [self.model(model, member) for member in members(run)]

    def report(self, metric: str) -> str:
        """Return the report of the headline: ``bleu.txt``, or ``rouge.txt`` for summaries."""
        return f"{self.path}/{metric}.txt"

    @property
    def examples(self) -> str:
        """A few translations with their sources and references."""
        return f"{self.path}/examples.txt"


def results_of(file: Path) -> Path:
    """Return the results folder that contains a file in the folder of a run (`TaskFolder.run`).

    It is the fifth folder above the file, ``RESULTS/TASK/models/MODEL/RUN/FILE``. If the file has
    fewer folders above it, it is the root folder.
    """
    return _folder_above(file, 5)


def task_of(file: Path) -> Path:
    """Return the task's folder that contains a file in the folder of a run; see `results_of`."""
    return _folder_above(file, 4)


def _folder_above(file: Path, levels: int) -> Path:
    parents = file.absolute().parents
    return parents[min(levels, len(parents)) - 1]


@dataclass(frozen=True)
class Layout:
    """The folders of a scale (config/scales), such as demo."""

    results: str  # the folder of everything that the workflow makes
    downloads: str  # the folder of the downloaded files

    @property
    def mirror(self) -> str:
        """The folder of the miniature mirror, if the scale generates one."""
        return f"{self.results}/archives"

    def task(self, name: str) -> TaskFolder:
        """Return the folder of a task."""
        return TaskFolder(f"{self.results}/{name}")

    def paper(self, file: str) -> str:
        """Return a file of the overall results: a table, a figure, the ledger or the report."""
        return f"{self.results}/paper/{file}"
