"""fairseq's training text as a task's folder that this project trains on."""

from pathlib import Path

from convs2s.config.corpus import Languages, VocabularySettings
from convs2s.config.task import DatasetMetadata
from convs2s.data.dataset import binarize, build_vocabulary
from convs2s.data.word_counts import count_words
from convs2s.files.text import read_lines, write_lines


def prepare_fairseq_task(text: Path, folder: Path, most: int | None = None) -> Path:
    """Make vocabularies and token stores of the text, whose BPE tokens are taken as whole words.

    Args:
        text: ``train`` and ``val``, each ``.en`` and ``.de``.
        folder: where to write.
        most: how many of the first lines to take, or None for all.

    Returns:
        The folder.
    """
    metadata = DatasetMetadata(
        task="fairseq",
        languages=Languages(source="en", target="de"),
        preparation="moses_test",
        vocabulary=VocabularySettings(kind="word"),
    )
    tables = folder / "vocabulary" / "en.tsv", folder / "vocabulary" / "de.tsv"
    for split, name in (("train", "train"), ("valid", "val")):
        corpus = folder / f"{split}.en", folder / f"{split}.de"
        for path, table in zip(corpus, tables, strict=True):
            lines = list(read_lines(text / f"{name}{path.suffix}"))[:most]
            write_lines(path, lines)
            if split == "train":
                _write_vocabulary(path, table)
        binarize(
            text=corpus,
            bpe_codes=(),
            vocabularies=tables,
            store=folder / "dataset" / f"{split}.arrow",
            description=folder / "dataset" / f"{split}.json",
            metadata=metadata,
        )
    return folder


def _write_vocabulary(text: Path, output: Path) -> None:
    """Write all types of a side, the most frequent first."""
    words = text.with_name("words.tsv")
    count_words(text=text, output=words)
    build_vocabulary(
        words=words,
        bpe_codes=None,
        output=output,
        size=None,
        threshold=0,
        glossaries=(),
        minimum_count=1,
    )
