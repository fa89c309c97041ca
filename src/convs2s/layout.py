"""Where what a run makes lies below its results folder, as far as the package asks for it.

Names may hold Snakemake's wildcards, such as ``{task}``: the rules state their outputs in the same
words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.runs import members


@dataclass(frozen=True)
class TaskFolder:
    """The files of a task: its corpus, vocabularies, token stores, alignment and models."""

    path: str  # the folder, such as ``results/demo_en_fr``

    def text(self, stage: str, part: str, side: str) -> str:
        """Return a part of the corpus, ``raw``, ``tok``, ``clean`` or ``truecased``.

        Its side is ``source`` or ``target``.
        """
        return f"{self.path}/corpus/{stage}/{part}.{side}.zst"

    @property
    def pair_counts(self) -> str:
        """How many training pairs were read, kept and dropped, as a table for people."""
        return f"{self.path}/corpus/counts.txt"

    def bpe_codes(self, name: str) -> str:
        """Return BPE codes: ``codes`` of both sides, or ``codes.LANG``."""
        return f"{self.path}/vocabulary/{name}"

    def vocabulary(self, language: str) -> str:
        """Return the vocabulary of a side."""
        return f"{self.path}/vocabulary/{language}.tsv"

    def store(self, split: str) -> str:
        """Return the token store of ``train`` or ``valid``."""
        return f"{self.path}/dataset/{split}.arrow"

    def store_description(self, split: str) -> str:
        """Return what a token store holds, and how its text was prepared."""
        return f"{self.path}/dataset/{split}.json"

    @property
    def dataset_counts(self) -> str:
        """How many pairs the token stores hold, and how many were too long for them."""
        return f"{self.path}/dataset/counts.txt"

    @property
    def dictionary(self) -> str:
        """The alignment's dictionary for unknown words."""
        return f"{self.path}/alignment/dictionary.tsv"

    def run(self, model: str, run: str) -> str:
        """Return the folder of a run of a model."""
        return f"{self.path}/models/{model}/{run}"

    def model(self, model: str, run: str) -> str:
        """Return the model file of a run."""
        return f"{self.run(model, run)}/model.safetensors"

    def models(self, model: str, run: str) -> list[str]:
        """Return the model files of a run: one, or an ensemble's."""
        return [self.model(model, member) for member in members(run)]

    def translations(self, model: str, run: str, testset: str, decoding: str, suffix: str) -> str:
        """Return what a run makes of a test set: ``jsonl``, ``txt``, ``bleu.json`` and others."""
        return f"{self.run(model, run)}/{testset}.{decoding}.{suffix}"

    def report(self, metric: str) -> str:
        """Return the headline report: ``bleu.txt``, or of a task of summaries ``rouge.txt``."""
        return f"{self.path}/{metric}.txt"

    @property
    def examples(self) -> str:
        """A few translations to look at."""
        return f"{self.path}/examples.txt"


def results_of(file: Path) -> Path:
    """Return the folder of the results that a file of a run (`TaskFolder.run`) lies in.

    Where a folder of a run has fewer above it, that is the uppermost one.
    """
    return list(file.absolute().parents)[:5][-1]


@dataclass(frozen=True)
class Layout:
    """The folders of a scale."""

    results: str  # of everything that runs make
    downloads: str  # of what comes from elsewhere

    @property
    def mirror(self) -> str:
        """The miniature mirror, at a scale that generates one."""
        return f"{self.results}/archives"

    def task(self, name: str) -> TaskFolder:
        """Return the folder of a task."""
        return TaskFolder(f"{self.results}/{name}")

    def paper(self, file: str) -> str:
        """Return a file beside the paper's: a table, a figure, the ledger of runs, the report."""
        return f"{self.results}/paper/{file}"

    def run_files(self, task: str, model: str, runs: Sequence[str], file: str) -> list[str]:
        """Return a file of each of some runs."""
        return [f"{self.task(task).run(model, run)}/{file}" for run in runs]
