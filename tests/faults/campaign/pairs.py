"""Two commands at once in one folder: right bytes or one clear line, and nothing to remove by hand.

A trial starts both, the second up to a second later, then each again by itself, which must do its
work with nothing removed before. Moments and pairs are drawn, the same each time.
"""

import json
import random
import re
import shutil
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir
from hashlib import sha256
from itertools import combinations, cycle, islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from convs2s.files import checksums
from convs2s.files.tensors import load_tensors
from convs2s.files.text import write_lines
from convs2s.paper.cells import cells
from tests.faults.campaign import commands, traced
from tests.faults.campaign.commands import REFUSAL, REFUSED, SECOND, TABLE
from tests.faults.campaign.samples import ROOT, prepare_by_hand
from tests.faults.downloads import BODY, OTHER
from tests.faults.loopback import LoopbackServer, Served
from tests.support import tiny
from tests.support.cells import bleu, write
from tests.support.golden import DATA

NAMES = (
    "download",
    "download known",
    "published",
    "import fairseq",
    "export-results zip",
    "results",
    "ledger",
    "card",
    "status",
    "remove-states",
    "translate",
    "score rouge",
    "mirror",
    "train",
)
"""Commands of which pairs are tried; ``card`` and ``status`` read what others write."""

MOST_OFFSET = 1.0
"""Seconds between the two starts."""
MOST_SECONDS = 300.0
"""In which a process ends."""
CLEAR = r"(convs2s: )?error: "
"""How the line begins in which a command says why it does not work."""

TEMPORARY = re.compile(
    r"(^|/)(\.partial\.|state/|logs/|links\.zst\.state/)"
    r"|\.part(-\w+)?(\.json)?$|\.partial$|/\.[^/]+\.(lock|try)$"
)
"""Names that files have before they are whole, and of what a run leaves on purpose."""

STAYS = re.compile(r"(^|/)logs/|/\.[^/]+\.try$|/\.partial\.\w+/\.?lock$")
"""Logs, notes of failed tries, and temporary folders with nothing but a lock in them."""

Files = dict[str, str]
"""Name of each file in a place -> its SHA-256."""


def files_of(folder: Path) -> Files:
    """Return the files of a place; a link to a folder is none."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(folder))] = checksums.sha256(path)
    return found


def check_format(path: Path) -> None:
    """Raise where a file whose bytes differ each time is not whole, or not what its note says."""
    checksums.check_noted([path])
    if path.suffix == ".safetensors":
        load_tensors(path)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for line in archive.read("SHA256SUMS").decode().splitlines():
                digest, _, name = line.partition("  ")
                assert sha256(archive.read(name)).hexdigest() == digest, name
    elif path.suffix == ".jsonl":
        for line in path.read_text("utf-8").splitlines(keepends=True):
            assert line.endswith("\n"), "its last line is cut"
            json.loads(line)
    elif path.suffix in (".json", ".made"):
        json.loads(path.read_text("utf-8"))
    else:
        assert path.stat().st_size > 0, "it is empty"


class Ended(NamedTuple):
    """How a command ended: its exit code (None: it was killed, as it did not) and its streams."""

    name: str
    code: int | None
    out: str
    err: str

    def check(self) -> None:
        """Raise where it has neither done its work nor refused it in a line."""
        end = f"{self.name}: exit code {self.code}: {self.err[-1500:]}"
        assert self.code is not None, f"no end: {end}"
        assert "Traceback" not in self.err + self.out, f"a traceback: {end}"
        clear = [line for line in self.err.splitlines() if re.match(CLEAR, line)]
        is_refused = self.code == 1 and len(clear) == 1
        assert self.code in (0, 75) or is_refused, f"not one clear line: {end}"

    def check_done(self) -> None:
        """Raise where it has not done its work, nor found it done."""
        found_done = self.name in REFUSED and REFUSAL in self.err
        assert self.code == 0 or found_done, f"again: {self}"


class Alone(NamedTuple):
    """What a command makes when nothing disturbs it.

    Attributes:
        files: those that it leaves.
        varying: names of those whose bytes differ each time.
        out: what it prints; None: it differs each time.
    """

    files: Files
    varying: set[str]
    out: str | None


class Stage:
    """A prepared folder, in copies of which commands run; `calls` disturbs them there.

    A trial has a folder of its own: ``place`` in it is the copy, and beside it is what the commands
    say.
    """

    def __init__(self, pause: float = 0.0) -> None:
        """Prepare the folder; a download takes ten times ``pause``."""
        self.folder = Path(tempfile.mkdtemp(prefix="convs2s-faults-"))
        self.before = self.folder / "before"
        prepare_by_hand(self.before)
        self.server = LoopbackServer()
        self._add_inputs()
        served = {"corpus.en": BODY, "known.en": OTHER}
        served["runs.jsonl"] = (self.before / "runs.jsonl").read_bytes()
        for path, body in served.items():
            self.server.serve(f"/{path}", Served(body, pause=pause))
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([commands.__name__, *commands.LATE])
        self.initial = files_of(self.before)
        self.alone: dict[str, Alone] = {}

    def _add_inputs(self) -> None:
        """Write what the commands read that has nothing to do with the task."""
        folder = self.before
        (folder / "server").write_text(f"http://{self.server.host}")
        (folder / SECOND).mkdir()
        for name in ("out", "paper", "made", "logs", "downloads"):
            (folder / name).mkdir(exist_ok=True)
        shutil.copytree(DATA / "fairseq_random", folder / "fairseq")
        ledger = (ROOT / "docs/results/multi30k.ledger.jsonl").read_text("utf-8")
        write_lines(folder / "runs.jsonl", ledger.splitlines()[::20])
        draw = random.Random(1)
        lines = (" ".join(draw.choices(tiny.WORDS, k=6)) for _ in range(60))
        write_lines(folder / "text.en", lines)
        write_lines(folder / "links", ["0-0 1-2 3-1"] * 60)
        write_lines(folder / "page.html", ["<p>w1 w2</p>", "<p>w3 <b>w4</b></p>"])
        pairs = (f"one {number}\tun {number}" for number in range(200))
        write_lines(folder / "pairs.tsv", pairs)
        with chdir(folder):
            settings, _ = commands.scored_cells()
            for number, cell in enumerate(cells(settings, TABLE)[:6]):
                if cell.address.column == "bleu":
                    write(cell.paths[0], bleu(20.0 + number, 19.0))

    def close(self) -> None:
        """Remove the folder, but trials that are still there."""
        self.server.close()
        shutil.rmtree(self.before)

    def copy(self, trial: Path) -> Path:
        """Make the place of a trial."""
        return Path(shutil.copytree(self.before, trial / "place", symlinks=True))

    def start(
        self,
        name: str,
        trial: Path,
        log: Path | None = None,
        injected: str | None = None,
    ) -> Callable[[], Ended]:
        """Start a command; return what waits for its end. With a log, strace traces it."""
        said = trial / f"said {time.monotonic_ns()}"
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=commands.perform, args=(there, name, trial / "place", said)
        )
        process.start()
        here.recv()
        assert process.pid is not None
        tracer = traced.attach(process.pid, log, injected) if log else None
        here.send(None)

        def end() -> Ended:
            process.join(MOST_SECONDS)
            code = process.exitcode
            process.kill()
            process.join()
            if tracer is not None:
                tracer.communicate()
            streams = (Path(f"{said}.{end}") for end in ("out", "err"))
            texts = (one.read_text("utf-8", "replace") for one in streams)
            return Ended(name, code, *texts)

        return end

    def run_alone(self, name: str) -> None:
        """Run a command twice, with nothing that disturbs it."""
        found = []
        for number in (1, 2):
            trial = self.folder / f"alone-{number}"
            place = self.copy(trial)
            ended = self.start(name, trial)()
            assert ended.code == 0, f"{name}: {ended.err}{ended.out}"
            found.append((files_of(place), ended.out))
            shutil.rmtree(trial)
        (files, out), (others, other) = found
        varying = {path for path in files if files[path] != others.get(path)}
        self.alone[name] = Alone(files, varying, out if out == other else None)

    def check(
        self, names: Sequence[str], trial: Path, before: Files, stays: re.Pattern[str]
    ) -> None:
        """Raise at what is neither as before, nor what a command makes, nor what may stay."""
        alone = [self.alone[name] for name in names]
        for path, digest in files_of(trial / "place").items():
            made = {one.files.get(path) for one in alone}
            if digest in (before.get(path), *made) or stays.search(path):
                continue
            assert made != {None}, f"left behind: {path}"
            assert any(path in one.varying for one in alone), f"wrong bytes: {path}"
            try:
                check_format(trial / "place" / path)
            except Exception as error:
                raise AssertionError(f"not whole: {path}: {error!r}") from error

    def check_present(self, name: str, trial: Path) -> None:
        """Raise where something is not there that a command leaves."""
        left = {path for path in self.alone[name].files if not TEMPORARY.search(path)}
        absent = left - files_of(trial / "place").keys()
        assert not absent, f"{name}: not there: {sorted(absent)}"


def try_pair(stage: Stage, both: list[str], offset: float, trial: Path) -> None:
    """Run a trial of a pair, and raise where something is wrong."""
    stage.copy(trial)
    first = stage.start(both[0], trial)
    time.sleep(offset)
    second = stage.start(both[1], trial)
    for name, ended in zip(both, (first(), second()), strict=True):
        ended.check()
        if ended.code == 0:
            stage.check_present(name, trial)
    stage.check(both, trial, stage.initial, TEMPORARY)
    for name in both:
        stage.start(name, trial)().check_done()
        stage.check_present(name, trial)
    stage.check(both, trial, stage.initial, STAYS)


def run(trials: int, names: Sequence[str] = NAMES) -> Counter[str]:
    """Run trials; print each fault, and count them.

    Each command beside itself comes first, then beside each other, then all of it again.
    """
    counts = Counter(trials=trials)
    stage = Stage(pause=0.03)
    for name in names:
        stage.run_alone(name)
    pairs = [*zip(names, names, strict=True), *combinations(names, 2)]
    for number, pair in enumerate(islice(cycle(pairs), trials)):
        trial = stage.folder / f"trial{number}"
        draw = random.Random(f"{pair} {trial.name}")
        both = draw.sample(pair, 2)
        offset = draw.choice((0.0, draw.uniform(0.0, MOST_OFFSET)))
        try:
            try_pair(stage, both, offset, trial)
            shutil.rmtree(trial)
        except AssertionError as fault:
            counts["faults"] += 1
            print(f"  {both} {offset:.2f} s apart: {fault} (kept: {trial})", flush=True)
    stage.close()
    print(f"pairs: {dict(counts)}")
    return counts
