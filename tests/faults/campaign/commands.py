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

import torch

from convs2s.cli.main import main
from convs2s.config.load import load
from convs2s.config.options import Options
from convs2s.config.settings import Settings
from convs2s.download.download import download_file
from convs2s.errors import UserError, failures_of_system
from convs2s.files.checksums import check_noted
from convs2s.model_file import describe_model
from convs2s.paper.cells import cells
from convs2s.paper.ledger import published_file, read_ledger
from convs2s.paper.results import write_ledger
from convs2s.pipeline.job import job
from tests.faults.campaign.samples import stand_in
from tests.faults.downloads import OTHER

for late in (
    "interop.fairseq",
    "mirror.write",
    "paper.results_page",
    "publish.results",
):
    import_module(f"convs2s.{late}")  # what the commands import when they begin

TABLE = "table4"


@dataclass(frozen=True)
class Place:
    """A folder in which both processes of a trial work.

    Attributes:
        folder: in which they are started.
        task: the results of a task below it.
        url: of a server that has ``/corpus.tgz``, ``/known.tgz`` and ``/runs.jsonl``.
    """

    folder: Path
    task: str
    url: str

    def words(self, text: str) -> list[str]:
        """Return the words of a command; seed 1 is a run that has ended, seed 2 has not begun."""
        models = f"{self.task}/models/small"
        words = {"task": self.task, "models": models}
        return text.format(**words).split()


@dataclass(frozen=True)
class Command:
    """Something that writes.

    Attributes:
        perform: does it in the folder of the place, as a process of its own; or what is typed.
        outputs: globs of files that are the same bytes each time, with ``{task}`` in them.
        check: raises where another output is not whole.
        refusal: what it may say in place of doing its work again.
        is_workflow: whether it is Snakemake's, and needs a checkout.
    """

    perform: Callable[[Place], None] | str
    outputs: str = ""
    check: Callable[[Place], None] = lambda _: None
    refusal: str | None = None
    is_workflow: bool = False


def _download(path: str, digest: str | None) -> Callable[[Place], None]:
    """Return the job that brings a file of the server."""

    def perform(place: Place) -> None:
        output = Path("downloads", path)
        with job(stand_in(Path(f"logs/{path}"), [], [output])):
            download_file(f"{place.url}/{path}", output, sha256=digest)

    return perform


def _fetch_published(place: Place) -> None:
    """Do what a plan does with a published ledger."""
    options = Options(published=f"{place.url}/runs.jsonl")
    file = published_file(options, Path("published"))
    assert file is not None
    read_ledger(file)


def scored_cells() -> tuple[Settings, list[str]]:
    """Return settings of which the ledger and a table are made, and the scores that are there."""
    settings = load(Path.cwd(), {"scale": "demo"})
    paths = {path for cell in cells(settings, TABLE) for path in cell.paths}
    return settings, sorted(path for path in paths if Path(path).is_file())


def _ledger(_: Place) -> None:
    """Run the job of the rule ``write_ledger``."""
    settings, scores = scored_cells()
    output = Path("paper/ledger.jsonl")
    shown = cells(settings, TABLE)
    with job(stand_in(Path("logs/ledger"), [], [output])):
        write_ledger(
            settings, cells=shown, scores=scores, published=None, output=output
        )


def _check_notes(place: Place) -> None:
    check_noted((place.folder / "paper").glob("*"))


def _check_export(place: Place) -> None:
    """Raise where an exported archive is not what its own list of checksums says."""
    with zipfile.ZipFile(place.folder / "out/exported.zip") as archive:
        for line in archive.read("SHA256SUMS").decode().splitlines():
            digest, _, name = line.partition("  ")
            assert sha256(archive.read(name)).hexdigest() == digest, name


def _check_training(place: Place) -> None:
    """Raise where a training's model or records are not whole."""
    run = place.folder / place.task / "models/small/seed2"
    describe_model(run / "model.safetensors")
    for line in (run / "history.jsonl").read_text("utf-8").splitlines():
        json.loads(line)
    check_noted(run.glob("*"))


MODEL = "{task}/models/small/seed2/model.safetensors"
IMPORT = (
    "import fairseq fairseq/checkpoint_tiny_oldstyle.pt --languages en fr "
    "--source-dictionary fairseq/dict.src.txt --target-dictionary fairseq/dict.tgt.txt "
    "--output out/imported.safetensors"
)
TRANSLATE = (
    "translate {models}/seed1/model.safetensors --input text.en --output out/text.fr "
    "--device cpu --threads 1 --quiet --batch-sentences 4"
)
TRAIN = (
    "train {task} --settings {models}/settings.json --seed 2 --workers 0 --threads 1 "
    "--output {models}/seed2/model.safetensors --device cpu --quiet"
)
COMMANDS = {
    "download": Command(
        _download("corpus.tgz", None), "downloads/corpus.tgz downloads/*.sha256"
    ),
    "download known": Command(
        _download("known.tgz", sha256(OTHER).hexdigest()), "downloads/known.tgz"
    ),
    "published": Command(_fetch_published, "published/**/runs.jsonl*"),
    "import": Command(IMPORT, "out/imported.safetensors"),
    "export": Command(
        "export-results {task} out/exported.zip", "", _check_export, "exists already"
    ),
    "results": Command(
        "results runs.jsonl --scale multi30k --output out/page.md",
        "out/page.md out/page/*",
    ),
    "ledger": Command(_ledger, "paper/ledger.jsonl", _check_notes),
    "card": Command("card {models}/seed1/model.safetensors"),
    "status": Command("status results --json"),
    "remove-states": Command("remove-states results --yes"),
    "translate": Command(TRANSLATE, "out/text.fr"),
    "score": Command(
        "score rouge --reference text.en --items out/items.tsv text.en", "out/items.tsv"
    ),
    "mirror": Command("mirror out/mirror", "out/mirror/**/*"),
    "train": Command(TRAIN, MODEL, _check_training),
    "plan": Command(f"--dry-run {MODEL}", is_workflow=True),
    "workflow": Command(MODEL, MODEL, _check_training, is_workflow=True),
}
"""What writes, by name; ``card`` and ``status`` read what others write."""


def perform(name: str, place: Place, said: Path) -> None:
    """Run one of ``COMMANDS`` in this process; see `perform_command`."""
    perform_command(COMMANDS[name], place, said)


def perform_command(one: Command, place: Place, said: Path) -> None:
    """Run a command in this process, whose streams go to ``said`` with .out and .err."""
    for number, suffix in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{said}.{suffix}", os.O_WRONLY | os.O_CREAT, 0o644), number)
    os.chdir(place.folder)
    torch.set_num_threads(1)
    try:
        if callable(one.perform):
            with failures_of_system():
                one.perform(place)
        elif one.is_workflow:
            words = [sys.executable, "-m", "snakemake", "--cores", "1"]
            os.execv(sys.executable, [*words, *place.words(one.perform)])
        else:
            main(place.words(one.perform))
    except UserError as error:  # of what is no command of `convs2s`
        sys.exit(f"error: {error}")
    finally:
        with suppress(OSError):
            sys.stdout.flush()
