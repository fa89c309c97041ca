"""The peer implementation's training text as a task's folder that this project trains on."""

from pathlib import Path

from convs2s.config_schema import schema, with_defaults
from convs2s.data.dataset import binarize, build_vocabulary
from convs2s.data.word_counts import count_words
from convs2s.files import read_lines, write_lines


def prepare_peer(text: Path, folder: Path, most: int | None = None) -> Path:
    """Make vocabularies and token stores of the text, whose tokens are taken as words.

    Args:
        text: ``train`` and ``val``, each ``.en`` and ``.de``.
        folder: where to write.
        most: how many of the first lines to take, or None for all.

    Returns:
        The folder.
    """
    vocabulary = with_defaults({"kind": "word"}, schema("task")["properties"]["vocabulary"])
    languages = {"source": "en", "target": "de"}
    facts = {"task": "peer", "languages": languages, "preparation": "moses_test"}
    tables = folder / "vocabulary" / "en.tsv", folder / "vocabulary" / "de.tsv"
    for split, name in (("train", "train"), ("valid", "val")):
        corpus = folder / f"{split}.en", folder / f"{split}.de"
        for path in corpus:
            write_lines(path, list(read_lines(text / f"{name}{path.suffix}"))[:most])
        if split == "train":
            for path, table in zip(corpus, tables, strict=True):
                count_words(read_lines(path), folder / "words.tsv")
                build_vocabulary(folder / "words.tsv", None, table, vocabulary, None)
        outputs = folder / "dataset" / f"{split}.arrow", folder / "dataset" / f"{split}.json"
        binarize(corpus, (None, None), tables, outputs, {**facts, "vocabulary": vocabulary})
    return folder
