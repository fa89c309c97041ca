"""What a training reads: the token stores, how their text was prepared, and its shortlist."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
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
from convs2s.text.bpe import read_codes
from convs2s.text.dictionary import read_candidates

SPLITS = ("train", "valid")


@dataclass(frozen=True)
class TrainingData:
    """A task's folder as ``snakemake prepare`` makes it."""

    train: TokenStore  # pairs to learn from
    valid: TokenStore  # pairs that decide the learning rate and the best epoch
    types: dict[str, list[str]]  # the types of each side, in the order of their indices
    description: StoreDescription  # of the training store: task, languages, preparation, vocabulary
    bpe_codes: str | None  # BPE codes, or None
    splittable: list[str] | None  # source tokens that BPE may leave, or None for all
    checksums: dict[str, str]  # SHA-256 of every file that the weights depend on

    @classmethod
    def read(cls, folder: Path) -> "TrainingData":
        """Open a task's folder.

        Raises:
            UserError: A file is missing, something else, or changed since it was made.
        """
        files = TaskFolder(str(folder))
        check_noted(map(files.store_description, SPLITS))
        about = {split: read_description(Path(files.store_description(split))) for split in SPLITS}
        description = about["train"]
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
        for name in vocabulary.bpe_codes_names(languages.source):
            codes_file = Path(files.bpe_codes(name))
            check_noted([codes_file])
            codes = read_codes(codes_file)
        splittable = None
        if codes is not None and vocabulary.threshold:
            counts = read_counts(tables["source"])
            splittable = sorted(frequent_tokens(counts, vocabulary.threshold))
        checksums = {f"dataset/{split}.arrow": store.sha256 for split, store in about.items()}
        checksums |= {f"vocabulary/{table.name}": sha256(table) for table in tables.values()}
        return cls(
            train=TokenStore(files.store("train")),
            valid=TokenStore(files.store("valid")),
            types=types,
            description=description,
            bpe_codes=codes,
            splittable=splittable,
            checksums=checksums,
        )

    def check_checksums(self) -> None:
        """Read both stores to their ends, side by side, for their recorded checksums.

        A flipped bit would train another model under the same name; it is a UserError. It is done
        once for each start of a training, as fast as the disk is, and leaves the stores in memory.
        """
        stores = {store.path: self.checksums[f"dataset/{store.path.name}"] for store in self.stores}
        with ThreadPoolExecutor() as pool:
            list(pool.map(check_sha256, stores, stores.values()))

    @property
    def stores(self) -> tuple[TokenStore, TokenStore]:
        """Both stores, that to learn from first."""
        return self.train, self.valid

    def check_lengths(self, positions: Mapping[str, int | None]) -> None:
        """Refuse stores without pairs, and pairs with more tokens than the model has positions.

        Raises:
            UserError: Names the store, the side, the pair and what to change.
        """
        for store in self.stores:
            if not len(store):
                raise UserError(
                    f"{store.path}: has no pairs: corpus/counts.txt and, by snakemake prepare, "
                    "dataset/counts.txt say where they went; loosen clean, or give more text"
                )
            for side, maximum in positions.items():
                lengths = store.lengths(side)
                if maximum is not None and lengths.max() > maximum:
                    raise UserError(
                        f"{store.path}: the {side} of pair {int(lengths.argmax()) + 1} has "
                        f"{lengths.max()} tokens with </s>, but the model has {maximum} "
                        f"positions: lower clean.tokens to {maximum - 1} or raise positions.maximum"
                    )


def read_shortlist(
    architecture: Architecture, candidates: Path | None, data: TrainingData
) -> Shortlist | None:
    """Return how the model selects its vocabulary (section 5.4); None where it scores all types.

    ``candidates``: the alignment's ``candidates.tsv``, for a model that selects.

    Raises:
        UserError: The model selects and there are no candidates, or the other way round, or its
            vocabulary is of pieces of words, which the alignment does not have.
    """
    wanted = architecture.selection
    if wanted is None:
        if candidates is not None:
            raise UserError(f"--candidates {candidates}: this model selects no vocabulary")
        return None
    if candidates is None:
        raise UserError(
            "architecture.vocabulary_selection: needs the alignment's candidates: give "
            "--candidates, such as results/TASK/alignment/candidates.tsv (snakemake align)"
        )
    if data.bpe_codes is not None:
        raise UserError(
            "architecture.vocabulary_selection: needs a vocabulary of words, as the alignment's "
            "are; this task's is of pieces of words"
        )
    return Shortlist.from_words(
        read_candidates(candidates),
        Vocabulary(data.types["source"]),
        Vocabulary(data.types["target"]),
        frequent=wanted.frequent,
        most=wanted.candidates,
    )
