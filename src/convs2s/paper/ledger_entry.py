"""A line of a ledger: what a run scored and what it rests on; whoever may have written it.

Planning reads a published ledger, so this module imports nothing that only jobs have.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from convs2s.errors import UserError
from convs2s.paper.run_inputs import fingerprint_of

MOST_BYTES = 64 << 20
"""The largest ledger that is read: some ten thousand runs."""

MOST_LINE_BYTES = 2 << 20
"""The longest line: the sentences of a test set are most of it."""

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)

# No control characters, and nothing that a page would take for markup.
Plain = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f<>`]*$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Packed = Annotated[str, Field(pattern="^[A-Za-z0-9+/=]*$")]


@with_config(_CLOSED)
class RunScore(TypedDict):
    """A number of a run, and the signature of its metric; perplexity has none."""

    score: float
    signature: Plain | None


@dataclass(frozen=True)
class LedgerEntry:
    """One file of numbers of one run.

    Attributes:
        fingerprint: of ``inputs``: equal inputs have equal ones.
        file: the file, from the folder of the workflow's run.
        table_cells: for each cell that shows it "TABLE, row NUMBER, COLUMN".
        run: task, model, run, test set and decoding.
        scale: whose stand-ins it was run with.
        scores: measure -> score and signature, of all measures that the file holds.
        lines: of the test set; None where there is none.
        sha256: path of each file that it was computed from -> checksum, the models' among them.
        processor: what it was computed on.
        revision: of the code.
        date: the UTC day of the file.
        inputs: what the configuration states that the numbers depend on (`run_inputs`).
        sentences: measure -> what its sentences add to it, as `scoring.sentence_statistics` encodes
            it, for tokenized BLEU.
        origin: the published ledger that it was taken from; None of a run made here.
    """

    __pydantic_config__ = _CLOSED

    fingerprint: Digest
    file: Plain
    table_cells: tuple[Plain, ...]
    run: Mapping[Plain, Plain | None]
    scale: Plain
    scores: Mapping[Plain, RunScore]
    lines: Annotated[int, Field(ge=0)] | None
    sha256: Mapping[Plain, Digest]
    processor: Plain | None
    revision: Plain | None
    date: Day
    inputs: Mapping[str, object] = field(default_factory=dict)
    sentences: Mapping[Plain, Packed] = field(default_factory=dict)
    origin: Plain | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The checksums of its model files, an ensemble's in order."""
        return models_in(self.sha256)


def models_in(checksums: Mapping[str, str]) -> tuple[str, ...]:
    """Return the checksums of the model files among a run's files, an ensemble's in order."""
    return tuple(digest for path, digest in checksums.items() if path.endswith(".safetensors"))


def read_ledger(path: Path) -> list[LedgerEntry]:
    """Read a ledger that anybody may have written.

    Raises:
        UserError: it is missing or too large, a line is no entry, or its inputs do not give its
            fingerprint; the message names the file and the line.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file: expected a ledger, a JSON line for each run")
    if path.stat().st_size > MOST_BYTES:
        raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB: no ledger is as large")
    return [_entry(line, f"{path}:{number}") for number, line in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each line."""
    with path.open("rb") as stream:
        lines = iter(lambda: stream.readline(MOST_LINE_BYTES + 1), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) > MOST_LINE_BYTES:
                raise UserError(f"{path}:{number}: a line of more than {MOST_LINE_BYTES} bytes")
            yield number, line


@cache
def _form() -> TypeAdapter[LedgerEntry]:
    return TypeAdapter(LedgerEntry)


def _entry(line: bytes, where: str) -> LedgerEntry:
    try:
        entry = _form().validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{where}: no entry of a ledger: {f'{place}: ' if place else ''}{first['msg']}"
        ) from None
    if fingerprint_of(entry.inputs) != entry.fingerprint:
        raise UserError(
            f"{where}: the inputs of this run do not give its fingerprint: the line was changed, "
            "or was not written by this workflow; take the ledger from where it was published"
        )
    return entry
