"""The data of a training: token stores, vocabularies, BPE codes and the shortlist."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.architecture import Architecture
from convs2s.data.dataset import StoreDescription, frequent_tokens, read_description
from convs2s.data.shortlist import Shortlist
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import Vocabulary, read_counts
from convs2s.errors import UserError
from convs2s.files.checksums import check_noted, check_sha256, sha256
from convs2s.layout import TaskFolder
from convs2s.scoring.data_counts import unknown_notes
from convs2s.text.bpe import read_codes
from convs2s.text.dictionary import read_candidates

SPLITS = ("train", "valid")


@dataclass(frozen=True)
class TrainingData:
    """The content of a task's folder, as ``snakemake prepare`` makes it."""

    train: TokenStore  # pairs to learn from
    # Validation pairs, which decide the learning rate and the best epoch.
    valid: TokenStore
    # Side (source, target) -> its types, in order of their indices.
    types: dict[str, list[str]]
    # Of the training store: task, languages, preparation, vocabulary.
    description: StoreDescription
    bpe_codes: str | None  # text of the BPE codes; None if the vocabulary is of words
    # Source tokens that reach the vocabulary threshold. BPE splits all others further. None: the
    # vocabulary is of words, or there is no threshold.
    splittable: list[str] | None
    # File name -> SHA-256, of every file that the weights depend on.
    checksums: dict[str, str]
    # What is unusual about the text of each split, one line each.
    notes: list[str]

    @classmethod
    def read(cls, folder: Path) -> "TrainingData":
        """Open the stores in a task's folder and read the other files.

        The checksums of the stores are not checked here, but by ``check_checksums``.

        Raises:
            UserError: A file is missing, has another format, or was changed after it was made.
        """
        files = TaskFolder(str(folder))
        descriptions = {}  # split -> the description of its store
        for split in SPLITS:
            path = Path(files.store_description(split))
            check_noted([path])
            descriptions[split] = read_description(path)
        description = descriptions["train"]
        languages = description.languages
        vocabulary = description.vocabulary
        tables = {
            "source": Path(files.vocabulary(languages.source)),
            "target": Path(files.vocabulary(languages.target)),
        }
        check_noted(tables.values())
        types = {}
        for side, table in tables.items():
            types[side] = [token for token, _ in read_counts(table)]
        codes = None
        # Only the codes of the source are read: the model splits no other text.
        codes_names = vocabulary.bpe_codes_names(languages.source)
        if codes_names:  # the vocabulary is not of words
            codes_file = Path(files.bpe_codes(codes_names[0]))
            check_noted([codes_file])
            codes = read_codes(codes_file)
        splittable = None
        if codes is not None and vocabulary.threshold:
            counts = read_counts(tables["source"])
            splittable = sorted(frequent_tokens(counts, vocabulary.threshold))
        checksums = {}
        notes = []
        for split, store in descriptions.items():
            checksums[f"dataset/{split}.arrow"] = store.sha256
            notes += [f"{split}: {note}" for note in unknown_notes(store.token_counts)]
        for table in tables.values():
            checksums[f"vocabulary/{table.name}"] = sha256(table)
        return cls(
            train=TokenStore(files.store("train")),
            valid=TokenStore(files.store("valid")),
            types=types,
            description=description,
            bpe_codes=codes,
            splittable=splittable,
            checksums=checksums,
            notes=notes,
        )

    def check_checksums(self) -> None:
        """Read both stores, and compare them with their recorded checksums.

        If a bit of a store was flipped, another model would be trained under the same name. The
        check takes as long as the disk needs to read the stores, which are then cached in memory.

        Raises:
            UserError: A store differs from its checksum.
        """
        for store in (self.train, self.valid):
            check_sha256(store.path, self.checksums[f"dataset/{store.path.name}"])

    def check_lengths(self, positions: Mapping[str, int | None]) -> None:
        """Check that both stores have pairs, and that the model has a position for each token.

        Args:
            positions: side (source, target) -> number of positions of the model; None: unlimited.

        Raises:
            UserError: A store is empty, or a pair has more tokens than positions. The message names
                the store, and the side and number of the pair.
        """
        for store in (self.train, self.valid):
            if not len(store):
                raise UserError(
                    f"{store.path}: has no pairs; corpus/counts.txt and dataset/counts.txt, which "
                    "`snakemake prepare` writes, say which step dropped them; widen the limits of "
                    "clean in the task's file, or provide more text"
                )
            for side, maximum in positions.items():
                lengths = store.lengths(side)
                if maximum is not None and lengths.max() > maximum:
                    raise UserError(
                        f"{store.path}: the {side} of pair {int(lengths.argmax()) + 1} has "
                        f"{lengths.max()} tokens with </s>, but the model has {maximum} "
                        f"positions; lower clean.tokens to {maximum - 1} or raise positions.maximum"
                    )


def read_shortlist(
    architecture: Architecture,
    candidates: Path | None,
    data: TrainingData,
) -> Shortlist | None:
    """Return the shortlist of a model with vocabulary selection (paper, section 5.4).

    Return None for a model without selection, which scores all types. ``candidates`` is the file
    ``candidates.tsv`` of the alignment.

    Raises:
        UserError: A model with selection has no ``candidates``, a model without selection has some,
            or a vocabulary to select from has BPE tokens, for which there is no alignment.
    """
    selection = architecture.selection
    if selection is None:
        if candidates is not None:
            raise UserError(
                f"--candidates {candidates}: the model has no vocabulary_selection that would use "
                "them; leave out the option"
            )
        return None
    if candidates is None:
        raise UserError(
            "architecture.vocabulary_selection: needs the alignment's candidates; give them as "
            "--candidates, such as results/TASK/alignment/candidates.tsv (made by `snakemake "
            "align`)"
        )
    if data.bpe_codes is not None:
        raise UserError(
            "architecture.vocabulary_selection: needs a vocabulary of words, because words are "
            "aligned; the vocabulary of this task has BPE tokens"
        )
    return Shortlist.from_words(
        read_candidates(candidates),
        Vocabulary(data.types["source"]),
        Vocabulary(data.types["target"]),
        frequent=selection.frequent,
        most=selection.candidates,
    )
