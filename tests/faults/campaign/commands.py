"""The commands that ``pairs`` runs two at once; a forked process has all of it loaded."""

import json
import os
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import torch

from convs2s.cli.main import main
from convs2s.config.load import load
from convs2s.config.options import Options
from convs2s.config.settings import Settings
from convs2s.download.download import download_file
from convs2s.errors import UserError
from convs2s.files.checksums import check_noted
from convs2s.model_file import describe_model
from convs2s.paper.ledger import published_file, read_ledger
from convs2s.paper.results import write_ledger
from convs2s.paper.tables import write_table
from convs2s.pipeline.job import job
from tests.support.cells import cells

for late in (
    "interop.fairseq",
    "mirror.write",
    "paper.results_page",
    "publish.results",
):
    import_module(f"convs2s.{late}")  # what the commands import when they begin

PAGE_SCALE, TABLE = "multi30k", "table4"


@dataclass(frozen=True)
class Place:
    """A folder in which both processes of a trial work.

    Attributes:
        folder: in which they are started.
        task: the results of a task below it.
        url: of a server that has ``/corpus.tgz``, ``/known.tgz`` and ``/runs.jsonl``.
        known: the SHA-256 of ``/known.tgz``.
    """

    folder: Path
    task: str
    url: str
    known: str

    @property
    def seed1(self) -> str:
        """A run that has ended."""
        return f"{self.task}/models/small/seed1"

    @property
    def seed2(self) -> str:
        """A run that has not begun."""
        return f"{self.task}/models/small/seed2"


@dataclass(frozen=True)
class Command:
    """Something that writes.

    Attributes:
        perform: does it in the folder of the place, as a process of its own.
        outputs: globs of files that are the same bytes each time, with ``{task}`` in them.
        check: raises where another output is not whole.
        refusal: what it may say in place of doing its work again.
        is_workflow: whether it needs a checkout.
    """

    perform: Callable[[Place], None]
    outputs: tuple[str, ...] = ()
    check: Callable[[Place], None] = lambda _: None
    refusal: str | None = None
    is_workflow: bool = False


def typed(*words: str) -> Callable[[Place], None]:
    """Return what runs a command of ``convs2s``; its words may name parts of the place."""
    return lambda place: main([word.format(**_words(place)) for word in words])


def _words(place: Place) -> dict[str, str]:
    return {"task": place.task, "seed1": place.seed1, "seed2": place.seed2}


def snakemake(*words: str) -> Callable[[Place], None]:
    """Return what runs the workflow."""

    def perform(place: Place) -> None:
        given = [word.format(**_words(place)) for word in words]
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *given]
        os.execv(sys.executable, command)

    return perform


def download(path: str, *, is_known: bool) -> Callable[[Place], None]:
    """Return the job that brings a file of the server."""

    def perform(place: Place) -> None:
        output = Path("downloads", path)
        with job(_stand_in(path, output)):
            digest = place.known if is_known else None
            download_file(f"{place.url}/{path}", output, sha256=digest)

    return perform


def _stand_in(log: str, *outputs: Path) -> SimpleNamespace:
    """Return what the job of a rule is told."""
    return SimpleNamespace(
        log=[f"logs/{log}.log"], input=[], output=[*map(str, outputs)]
    )


def fetch_published(place: Place) -> None:
    """Do what a plan does with a published ledger."""
    file = published_file(
        Options(published=f"{place.url}/runs.jsonl"), Path("published")
    )
    assert file is not None
    read_ledger(file)


def scored_cells() -> tuple[Settings, list[str]]:
    """Return settings of which the ledger and a table are made, and the scores that are there."""
    settings = load(Path.cwd(), {"scale": "demo"})
    paths = {path for cell in cells(settings, TABLE) for path in cell.paths}
    return settings, sorted(path for path in paths if Path(path).is_file())


def ledger(_: Place) -> None:
    """Run the job of the rule ``write_ledger``."""
    settings, scores = scored_cells()
    output = Path("paper/ledger.jsonl")
    with job(_stand_in("ledger", output)):
        shown = cells(settings, TABLE)
        write_ledger(
            settings, cells=shown, scores=scores, published=None, output=output
        )


def table(_: Place) -> None:
    """Run the job of the rule ``write_table``."""
    settings, scores = scored_cells()
    outputs = [
        Path(f"paper/{TABLE}.{suffix}") for suffix in ("md", "csv", "tex", "svg")
    ]
    with job(_stand_in(TABLE, *outputs)):
        write_table(
            settings,
            TABLE,
            cells=cells(settings, TABLE),
            scores=scores,
            published=None,
            failures={},
            outputs=outputs,
        )


def check_notes(place: Place) -> None:
    """Raise where what jobs have noted of the paper's files does not hold."""
    check_noted((place.folder / "paper").glob("*"))


def check_folder(folder: Path) -> None:
    """Raise where an exported folder is not what its own list of checksums says."""
    _check_export(lambda name: (folder / name).read_bytes())


def check_archive(path: Path) -> None:
    """Likewise of an exported archive."""
    with zipfile.ZipFile(path) as archive:
        _check_export(archive.read)


def _check_export(read: Callable[[str], bytes]) -> None:
    lines = read("SHA256SUMS").decode().splitlines()
    listed = {
        name: digest for digest, _, name in (line.partition("  ") for line in lines)
    }
    for name, digest in listed.items():
        assert sha256(read(name)).hexdigest() == digest, name
        assert ".partial." not in name
    assert any(name.endswith(".bleu.json") for name in listed)


def check_training(place: Place) -> None:
    """Raise where a training's model or records are not whole."""
    run = place.folder / place.seed2
    describe_model(run / "model.safetensors")
    for line in (run / "history.jsonl").read_text("utf-8").splitlines():
        json.loads(line)
    json.loads((run / "training.json").read_bytes())
    check_noted(run.glob("*"))


TRAINED = ("{task}/models/small/seed2/model.safetensors",)

COMMANDS = {
    "download": Command(
        download("corpus.tgz", is_known=False),
        ("downloads/corpus.tgz", "downloads/*.sha256"),
    ),
    "download known": Command(
        download("known.tgz", is_known=True), ("downloads/known.tgz",)
    ),
    "published": Command(fetch_published, ("published/**/runs.jsonl*",)),
    "import": Command(
        typed(
            *("import", "fairseq", "fairseq/checkpoint_tiny_oldstyle.pt"),
            *("--source-dictionary", "fairseq/dict.src.txt"),
            *("--target-dictionary", "fairseq/dict.tgt.txt"),
            *("--languages", "en", "fr", "--output", "out/imported.safetensors"),
        ),
        ("out/imported.safetensors",),
    ),
    "export": Command(
        typed("export-results", "{task}", "out/exported.zip"),
        check=lambda place: check_archive(place.folder / "out/exported.zip"),
        refusal="exists already",
    ),
    "export folder": Command(
        typed("export-results", "{task}", "out/exported"),
        check=lambda place: check_folder(place.folder / "out/exported"),
        refusal="exists already",
    ),
    "results": Command(
        typed(
            "results", "runs.jsonl", "--scale", PAGE_SCALE, "--output", "out/page.md"
        ),
        ("out/page.md", "out/page/*"),
    ),
    "ledger": Command(ledger, ("paper/ledger.jsonl",), check_notes),
    "table": Command(table, (f"paper/{TABLE}.*",), check_notes),
    "card": Command(typed("card", "{seed1}/model.safetensors")),
    "status": Command(typed("status", "results", "--json")),
    "remove-states": Command(typed("remove-states", "results", "--yes")),
    "translate": Command(
        typed(
            *("translate", "{seed1}/model.safetensors", "--input", "text.en"),
            *(
                "--output",
                "out/text.fr",
                "--device",
                "cpu",
                "--threads",
                "1",
                "--quiet",
            ),
            *("--batch-sentences", "4"),
        ),
        ("out/text.fr",),
    ),
    "score": Command(
        typed(
            "score",
            "rouge",
            "--reference",
            "text.en",
            "--items",
            "out/items.tsv",
            "text.en",
        ),
        ("out/items.tsv",),
    ),
    "mirror": Command(typed("mirror", "out/mirror"), ("out/mirror/**/*",)),
    "train": Command(
        typed(
            *(
                "train",
                "{task}",
                "--settings",
                "{task}/models/small/settings.json",
                "--seed",
                "2",
            ),
            *(
                "--output",
                "{seed2}/model.safetensors",
                "--device",
                "cpu",
                "--threads",
                "1",
            ),
            *("--workers", "0", "--quiet"),
        ),
        TRAINED,
        check_training,
    ),
    "plan": Command(
        snakemake("--dry-run", "{seed2}/model.safetensors"), is_workflow=True
    ),
    "workflow": Command(
        snakemake("{seed2}/model.safetensors"),
        TRAINED,
        check_training,
        is_workflow=True,
    ),
}
"""What writes, by name; ``card`` and ``status`` read what others write."""


def perform(name: str, place: Place, said: Path) -> None:
    """Run a command in this process, whose streams go to ``said`` with .out and .err."""
    for number, suffix in ((1, "out"), (2, "err")):
        os.dup2(
            os.open(f"{said}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
            number,
        )
    os.chdir(place.folder)
    torch.set_num_threads(1)
    try:
        COMMANDS[name].perform(place)
    except UserError as error:  # of what is no command of `convs2s`
        sys.exit(f"error: {error}")
    finally:
        with suppress(OSError):
            sys.stdout.flush()
