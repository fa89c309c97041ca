"""The ledger: a JSON line for each run that tables rest on, whoever may have written it.

Planning reads a published ledger, so this module imports nothing that only jobs have.
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

MOST_BYTES = 64 << 20  # the largest ledger that is read: some ten thousand runs
MOST_LINE_BYTES = 2 << 20  # the longest line: the sentences of a test set are most of it

_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)

# No characters that control or reorder a line (Unicode's categories C, Zl and Zp), and nothing that
# a page would take for markup: no HTML, no code, and no link or image of Markdown, which have "](".
_WORD = r"\p{C}\p{Zl}\p{Zp}<>`\\"
Plain = Annotated[str, Field(max_length=1000, pattern=rf"^(?:[^{_WORD}\]]|\]+[^{_WORD}\](])*\]*$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Packed = Annotated[str, Field(pattern="^[A-Za-z0-9+/=]*$")]


def fingerprint_of(inputs: Mapping[str, object]) -> str:
    """Return the SHA-256 of a run's inputs, in 64 hexadecimal digits."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class RunScore:
    """A number of a run, and the signature of its metric; perplexity has none."""

    __pydantic_config__ = _CLOSED

    score: float
    signature: Plain | None


@dataclass(frozen=True)
class RunNames:
    """What a run is called here; None where its numbers need no test set, or no decoding."""

    __pydantic_config__ = _CLOSED

    task: Plain
    model: Plain
    run: Plain
    testset: Plain | None
    decoding: Plain | None


@dataclass(frozen=True)
class LedgerEntry:
    """One file of numbers of one run: all that tables, claims, figures and the report show of it.

    ``inputs`` (`run_inputs`) are what the configuration states that the numbers depend on;
    ``sentences``, of tokenized BLEU, what each sentence adds to it as `scoring.bleu` encodes it;
    ``curve``, of a training, the validation perplexity after each epoch.
    """

    __pydantic_config__ = _CLOSED

    fingerprint: Digest  # of the inputs: equal inputs have equal ones
    file: Plain  # from the folder of the workflow's run
    # The cells that showed it when the line was written, for people: `runs_by_cell` tells which do.
    table_cells: tuple[Plain, ...]
    run: RunNames
    scale: Plain  # whose stand-ins it was run with
    scores: Mapping[Plain, RunScore]  # by measure, of all measures that the file holds
    lines: Annotated[int, Field(ge=0)] | None  # of the test set
    sha256: Mapping[Plain, Digest]  # path of each file that it was computed from -> checksum
    processor: Plain | None
    revision: Plain | None
    date: Day  # the UTC day of the file
    inputs: Mapping[str, object] = field(default_factory=dict)
    sentences: Mapping[Plain, Packed] = field(default_factory=dict)
    curve: tuple[Annotated[float, Field(gt=0)], ...] = ()
    origin: Plain | None = None  # the published ledger that it was taken from
    # Path of each model file -> the checksum of its weights alone, which older ledgers lack.
    weights: Mapping[Plain, Digest] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str | None]:
        """What a ledger has one line of: a run on a processor."""
        return self.fingerprint, self.processor

    @property
    def trainings(self) -> list[tuple[str, str, str]]:
        """Task, model and run of each training that it rests on: an ensemble's are its members."""
        return [(self.run.task, self.run.model, member) for member in members(self.run.run)]

    @property
    def model_files(self) -> tuple[str, ...]:
        """The checksums of its model files, an ensemble's in order."""
        return tuple(self.sha256[path] for path in self.sha256 if path.endswith(".safetensors"))

    @property
    def models(self) -> tuple[str, ...]:
        """What its models are known by, an ensemble's in order: text, recipe and seed of each.

        The files are no part of it: a training that was repeated gives the same weights in a file
        that may have other bytes.
        """
        trained = fingerprint_of({"trained": self.inputs.get("trained")})
        return tuple(f"{trained} {member}" for member in members(self.run.run))

    def line(self) -> str:
        """Return the entry as a line of a ledger."""
        return json.dumps(_FORM.dump_python(self, mode="json"), ensure_ascii=False)


def planned_entry(
    inputs: Mapping[str, object], file: str, run: RunNames, scale: str
) -> LedgerEntry:
    """Return the entry of a run that is planned: it has no scores, and nothing of their making."""
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


_FORM = TypeAdapter(LedgerEntry)


def read_ledger(path: Path) -> list[LedgerEntry]:
    """Read a ledger that anybody may have written; a UserError names the file and the line.

    Of two lines of one run the later counts; a run on two processors has a line for each.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file: expected a ledger, a JSON line for each run")
    if path.stat().st_size > MOST_BYTES:
        raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB: no ledger is as large")
    entries: dict[tuple[str, str | None], LedgerEntry] = {}
    number = 0
    with path.open("rb") as stream:
        while line := stream.readline(MOST_LINE_BYTES + 1):
            number += 1
            entry = _read_entry(line, f"{path}:{number}")
            entries[entry.key] = entry
    return list(entries.values())


def _read_entry(line: bytes, where: str) -> LedgerEntry:
    if len(line) > MOST_LINE_BYTES:
        raise UserError(f"{where}: a line of more than {MOST_LINE_BYTES} bytes")
    try:
        entry = _FORM.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
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


def published_file(options: Options, downloads: Path) -> Path | None:
    """Return where the published ledger lies, fetched if it is not there; None without one.

    One that is not what its record says is fetched again.
    """
    if options.published is None:
        return None
    if "://" not in options.published:
        return Path(options.published)
    place = local_path(options.published, downloads)
    if not place.exists() or recorded_sha256(place) not in (None, sha256(place)):
        from convs2s.download.download import download_file  # its libraries are not planning's

        download_file(options.published, place, mirrors=options.mirrors)
    return place
