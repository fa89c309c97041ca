"""What a training reads: the token stores and how their text was prepared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s.data.dataset import frequent_tokens
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import read_counts
from convs2s.errors import UserError
from convs2s.files import sha256
from convs2s.pipeline.workflow import codes_name

SPLITS = ("train", "valid")


@dataclass(frozen=True)
class TrainingData:
    """A task's folder as ``snakemake prepare`` makes it.

    Attributes:
        train: pairs to learn from.
        valid: pairs that decide the learning rate and the best epoch.
        types: the types of each side, in the order of their indices.
        preparation: ``dataset/train.json``: task, languages, preparation, vocabulary.
        codes: BPE codes, or None.
        splittable: source tokens that BPE may leave, or None for all.
        checksums: SHA-256 of every file that the result depends on.
    """

    train: TokenStore
    valid: TokenStore
    types: dict[str, list[str]]
    preparation: dict[str, Any]
    codes: str | None
    splittable: list[str] | None
    checksums: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> "TrainingData":
        """Open a task's folder.

        Raises:
            UserError: a file is missing or is something else.
        """
        facts = {split: _read(folder / "dataset" / f"{split}.json") for split in SPLITS}
        preparation = facts["train"]
        languages = preparation["languages"]
        stores = {split: folder / "dataset" / f"{split}.arrow" for split in SPLITS}
        tables = {side: folder / "vocabulary" / f"{languages[side]}.tsv" for side in languages}
        vocabulary = preparation["vocabulary"]
        name = codes_name(vocabulary, languages["source"])
        codes = None if name is None else (folder / "vocabulary" / name).read_text("utf-8")
        counts = {side: list(read_counts(table)) for side, table in tables.items()}
        threshold = vocabulary["threshold"]
        return cls(
            train=TokenStore(stores["train"]),
            valid=TokenStore(stores["valid"]),
            types={side: [token for token, _ in pairs] for side, pairs in counts.items()},
            preparation=preparation,
            codes=codes,
            splittable=sorted(frequent_tokens(counts["source"], threshold))
            if codes is not None and threshold
            else None,
            checksums={
                **{f"dataset/{split}.arrow": facts[split]["sha256"] for split in SPLITS},
                **{f"vocabulary/{path.name}": sha256(path) for path in tables.values()},
            },
        )

    def check_lengths(self, positions: Mapping[str, int | None]) -> None:
        """Refuse pairs with more tokens than the model has positions.

        Raises:
            UserError: naming the store, the side, the pair and what to change.
        """
        for store in (self.train, self.valid):
            for side, maximum in positions.items():
                lengths = store.lengths(side)
                if maximum is not None and len(lengths) and lengths.max() > maximum:
                    raise UserError(
                        f"{store.path}: the {side} of pair {int(lengths.argmax()) + 1} has "
                        f"{lengths.max()} tokens with </s>, but the model has {maximum} "
                        "positions: lower clean.maximum or raise positions.maximum"
                    )


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"{path}: no such file; make it with: snakemake prepare")
    facts: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return facts
