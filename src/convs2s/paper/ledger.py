"""The ledger: a JSON line for each file of numbers that the tables show.

A published ledger may have been written by anybody, so every line is checked. The workflow reads it
while it plans, so this module must not import libraries that are only installed in the environments
of jobs.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from convs2s.config.file_reference import local_path
from convs2s.config.options import Options
from convs2s.config.runs import members
from convs2s.errors import UserError
from convs2s.files.checksums import recorded_sha256, sha256
from convs2s.scoring.data_counts import Overlap

MOST_BYTES = 64 << 20  # maximum size of a ledger: enough for some ten thousand runs
# Maximum length of a line: most of it is the statistics of sentences.
MOST_LINE_BYTES = 2 << 20

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)

# Characters that a text of a ledger must not contain: those that control or reorder a line (Unicode
# categories C, Zl and Zp), and those that a page could read as HTML or code.
_REFUSED = r"\p{C}\p{Zl}\p{Zp}<>`\\"
# The pattern also refuses "](", which the links and images of Markdown contain. After "]" comes a
# character other than "(", or the text ends.
_PLAIN = rf"^(?:[^{_REFUSED}\]]|\]+[^{_REFUSED}\](])*\]*$"
Plain = Annotated[str, Field(max_length=1000, pattern=_PLAIN)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Packed = Annotated[str, Field(pattern="^[A-Za-z0-9+/=]*$")]  # base64


def fingerprint_of(inputs: Mapping[str, object]) -> str:
    """Return the SHA-256 of a run's inputs as 64 hexadecimal digits."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class RunScore:
    """A score of a run, and the signature of its metric; None for a score without a signature."""

    __pydantic_config__ = _CLOSED

    score: float
    signature: Plain | None


@dataclass(frozen=True)
class RunNames:
    """The names of a run in the configuration.

    Test set and decoding are None if the numbers of the run do not need them.
    """

    __pydantic_config__ = _CLOSED

    task: Plain
    model: Plain
    run: Plain
    testset: Plain | None
    decoding: Plain | None


@dataclass(frozen=True)
class LedgerEntry:
    """The content of one file of numbers of a run.

    Tables, claims, figures and the report show nothing else of the run. A planned run has an entry
    without scores.
    """

    __pydantic_config__ = _CLOSED

    fingerprint: Digest  # the checksum of ``inputs`` (`fingerprint_of`)
    file: Plain  # path of the file, relative to the folder of the workflow's run
    # The cells that showed the run when the line was written, for people who read the ledger. The
    # program does not read them; it computes the cells of a run (`results.runs_by_cell`).
    table_cells: tuple[Plain, ...]
    run: RunNames
    scale: Plain  # the scale at which the run was made
    scores: Mapping[Plain, RunScore]  # measure -> score, for all measures of the file
    lines: Annotated[int, Field(ge=0)] | None  # number of lines of the test set
    # Path of each file that the numbers depend on -> its checksum.
    sha256: Mapping[Plain, Digest]
    # The machines that trained the models and computed the numbers.
    processor: Plain | None
    revision: Plain | None  # git revision of the code that computed the numbers
    date: Day  # the day when the file was written, in UTC
    # The part of the configuration that the numbers depend on (`run_inputs`).
    inputs: Mapping[str, object] = field(default_factory=dict)
    # Statistics of each sentence for tokenized BLEU, as `scoring.bleu` encodes them.
    sentences: Mapping[Plain, Packed] = field(default_factory=dict)
    # The validation perplexity after each epoch; only entries of training.json have it.
    curve: tuple[Annotated[float, Field(gt=0)], ...] = ()
    # The published ledger that the entry comes from, if any.
    origin: Plain | None = None
    # Path of each model file -> the checksum of its weights alone. Older ledgers do not have it.
    weights: Mapping[Plain, Digest] = field(default_factory=dict)
    # What the test set shares with the training text, if it is known.
    overlap: Overlap | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """The fingerprint and the processor. A ledger has at most one entry for each key."""
        return self.fingerprint, self.processor

    @property
    def trainings(self) -> list[tuple[str, str, str]]:
        """Task, model and run of each training behind the entry; for an ensemble, its members."""
        return [
            (self.run.task, self.run.model, member) for member in members(self.run.run)
        ]

    @property
    def models(self) -> tuple[str, ...]:
        """A name for each model, made of its text, recipe and seed; several for an ensemble.

        Checksums of model files cannot serve as names, because a repeated training may give a file
        with the same weights but other bytes.
        """
        trained = fingerprint_of({"trained": self.inputs.get("trained")})
        return tuple(f"{trained} {member}" for member in members(self.run.run))

    def line(self) -> str:
        """Return the entry as a line of a ledger."""
        return json.dumps(_ENTRY.dump_python(self, mode="json"), ensure_ascii=False)


def planned_entry(
    inputs: Mapping[str, object],
    file: str,
    run: RunNames,
    scale: str,
) -> LedgerEntry:
    """Return the entry of a planned run: it has no scores, checksums, processor or date."""
    return LedgerEntry(
        fingerprint=fingerprint_of(inputs),
        file=file,
        table_cells=(),
        run=run,
        scale=scale,
        scores={},
        lines=None,
        sha256={},
        processor=None,
        revision=None,
        date="",
        inputs=inputs,
    )


_ENTRY = TypeAdapter(LedgerEntry)


def read_ledger(path: Path) -> list[LedgerEntry]:
    """Read and check a ledger, which anybody may have written.

    If two lines have the same fingerprint and processor, the later one counts.

    Raises:
        UserError: the file is missing, too large or malformed; the message names the line.
    """
    if not path.is_file():
        raise UserError(
            f"{path}: no such file: expected a ledger, a JSON line for each run"
        )
    if path.stat().st_size > MOST_BYTES:
        raise UserError(
            f"{path}: more than {MOST_BYTES >> 20} MiB, too large for a ledger"
        )
    entries: dict[tuple[str, str | None], LedgerEntry] = {}
    number = 0
    with path.open("rb") as stream:
        while line := stream.readline(MOST_LINE_BYTES + 1):
            number += 1
            entry = _read_entry(line, f"{path}:{number}")
            entries[entry.key] = entry
    return list(entries.values())


def _read_entry(line: bytes, where: str) -> LedgerEntry:
    """Return the entry of a line. ``where`` is the file and the line, for error messages."""
    if len(line) > MOST_LINE_BYTES:
        raise UserError(f"{where}: a line of more than {MOST_LINE_BYTES} bytes")
    try:
        entry = _ENTRY.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        reason = f"{key}: {first['msg']}" if key else first["msg"]
        raise UserError(f"{where}: not an entry of a ledger: {reason}") from None
    if fingerprint_of(entry.inputs) != entry.fingerprint:
        raise UserError(
            f"{where}: the inputs of this run do not give its fingerprint: the line was changed, "
            "or was not written by this workflow; download the ledger again from its publisher"
        )
    return entry


def published_file(options: Options, downloads: Path) -> Path | None:
    """Return the path of the published ledger; None if the options name none.

    If the option is a URL, the ledger is downloaded to ``downloads``, unless it is there already
    with the content that its recorded checksum states.
    """
    if options.published is None:
        return None
    if "://" not in options.published:
        return Path(options.published)
    path = local_path(options.published, downloads)
    if not path.exists() or recorded_sha256(path) not in (None, sha256(path)):
        # Imported here, because planning without a download does not need its libraries.
        from convs2s.download.download import download_file

        download_file(options.published, path, mirrors=options.mirrors)
    return path
