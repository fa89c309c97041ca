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
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations, cycle, islice
from multiprocessing import get_context
from pathlib import Path

from convs2s.files import checksums
from convs2s.files.checksums import check_noted
from convs2s.files.text import write_lines
from convs2s.layout import TaskFolder
from convs2s.model_file import describe_model
from convs2s.paper.cells import cells
from tests.faults.campaign import traced
from tests.faults.campaign.commands import (
    REFUSAL,
    REFUSED,
    TABLE,
    WORKFLOW,
    perform,
    scored_cells,
    typed,
)
from tests.faults.campaign.samples import LINES, ROOT, TABLES
from tests.faults.downloads import BODY, OTHER
from tests.faults.loopback import LoopbackServer, Served
from tests.support import own_pair, tiny
from tests.support.cells import bleu, write
from tests.support.checkout import Checkout, check_out
from tests.support.golden import DATA
from tests.support.tiny_results import write_results

MOST_OFFSET = 1.0
"""Seconds between the two starts."""
MOST_SECONDS = 300.0
"""In which a process ends."""
LEFTOVERS = (".partial.*", "*.part", "*.part-*", "*.part.json", ".*.lock")
"""What nothing may leave behind, wherever; but what a job locks beside its log, which stays."""
CLEAR = r"(convs2s: )?error: |Error: Directory cannot be locked\. "
"""How the line begins in which a command, or Snakemake itself, says why it does not work."""

MODEL = "{models}/seed2/model.safetensors"
OUTPUTS = {
    "download": "downloads/corpus.tgz downloads/*.sha256",
    "download known": "downloads/known.tgz",
    "published": "published/**/runs.jsonl*",
    "import fairseq": "out/imported.safetensors",
    "export-results zip": "",
    "results": "out/page.md out/page/*",
    "ledger": "paper/ledger.jsonl",
    "card": "",
    "status": "",
    "remove-states": "",
    "translate": "out/text.fr",
    "score rouge": "out/items.tsv",
    "mirror": "out/mirror/**/*",
    "train": MODEL,
    "plan": "",
    "workflow": MODEL,
}
"""Command -> globs of its files that are the same bytes each time; some only read."""

WITH_THE_WORKFLOW = {"workflow", "plan", "train", "remove-states", "status"}
WITH_THE_WORKFLOW |= {"export-results zip", "translate"}
"""What a workflow's run is tried beside: it takes long, and shares no file with the others."""

OWN = {"headline": {"model": "small", "seeds": [1]}, "vocabulary": {"merges": 40}}
OVERRIDES = {"models": {"small": own_pair.TINY}, "tasks": {"mine_en_nl": OWN}}


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (None: it was killed, as it did not) and its streams."""

    code: int | None
    out: str
    err: str

    def fault(self) -> str | None:
        """Say what is wrong with how a command ended that may be refused."""
        if self.code is None or "Traceback" in self.err + self.out:
            return f"exit code {self.code}, a traceback or no end: {self.err[-1500:]}"
        clear = [line for line in self.err.splitlines() if re.match(CLEAR, line)]
        if self.code not in (0, 75) and (self.code != 1 or len(clear) != 1):
            return f"exit code {self.code}, not one clear line: {self.err[-1500:]}"
        return None

    def fault_alone(self, name: str) -> str | None:
        """Say what is wrong where the command must do its work, or find it done."""
        if self.code == 0 or (name in REFUSED and REFUSAL in self.err):
            return None
        return f"{name} again: {self.code}: {self.err[-1500:]}"


def prepare_by_hand(folder: Path) -> str:
    """Write what the commands read, without the workflow; return the folder of the task."""
    shutil.copytree(ROOT / "config", folder / "config")
    shutil.copy(ROOT / "config.yaml", folder)
    # Manifests hold paths as the workflow names them.
    with chdir(folder), tiny.whole_states():
        write_results(TaskFolder("results/tiny"))
    return "results/tiny"


def _prepare_by_workflow(folder: Path) -> str:
    """Likewise of a checkout in which the workflow has run."""
    checkout = Checkout(check_out(ROOT, folder.parent).folder.rename(folder))
    own_pair.write_text(checkout)
    own_pair.write_tasks(ROOT, checkout)
    checkout.configure({"device": "cpu", "cores": 1, "overrides": OVERRIDES})
    checkout.snakemake("results/mine_en_nl/bleu.txt").succeeded()
    return "results/mine_en_nl"


class Stage:
    """A prepared folder, in copies of which commands run.

    A trial has a folder of its own: ``place`` in it is the copy, and beside it is what the commands
    say.
    """

    def __init__(self, names: Sequence[str], pause: float = 0.0) -> None:
        """Prepare the folder for these commands; a download takes ten times ``pause``."""
        self.folder = Path(tempfile.mkdtemp(prefix="convs2s-faults-"))
        self.before = self.folder / "before"
        prepare = _prepare_by_workflow if WORKFLOW.keys() & names else prepare_by_hand
        self.task = prepare(self.before)
        self.server = LoopbackServer()
        self._add_inputs()
        served = {"corpus.tgz": BODY, "known.tgz": OTHER}
        served["runs.jsonl"] = (self.before / "runs.jsonl").read_bytes()
        for path, body in served.items():
            self.server.serve(f"/{path}", Served(body, pause=pause))
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.campaign.commands"])

    def _add_inputs(self) -> None:
        """Write what the commands read that has nothing to do with the task."""
        folder = self.before
        (folder / "task").write_text(self.task)
        (folder / "server").write_text(f"http://{self.server.host}")
        (folder / self.task / "models/small/seed2").mkdir()
        for name in ("out", "paper", "made", "logs", "downloads"):
            (folder / name).mkdir(exist_ok=True)
        shutil.copytree(DATA / "fairseq_random", folder / "fairseq")
        ledger = (ROOT / "docs/results/multi30k.ledger.jsonl").read_text("utf-8")
        write_lines(folder / "runs.jsonl", ledger.splitlines()[::20])
        draw = random.Random(1)
        lines = (" ".join(draw.choices(tiny.WORDS, k=6)) for _ in range(60))
        write_lines(folder / "text.en", lines)
        write_lines(folder / "lines.en", LINES)
        write_lines(folder / "links", TABLES["links"])
        write_lines(folder / "page.html", ["<p>w1 w2</p>", "<p>w3 <b>w4</b></p>"])
        pairs = (f"one {number}\tun {number}" for number in range(200))
        write_lines(folder / "pairs.tsv", pairs)
        with chdir(folder):
            settings, _ = scored_cells()
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
        self, name: str, trial: Path, log: Path | None = None, *injected: str
    ) -> Callable[[], Ended]:
        """Start a command; return what waits for its end. With a log, strace traces it."""
        said = trial / f"said {time.monotonic_ns()}"
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=perform, args=(there, name, trial / "place", said)
        )
        process.start()
        here.recv()
        assert process.pid is not None
        tracer = traced.attach(process.pid, log, *injected) if log else None
        here.send(None)

        def end() -> Ended:
            process.join(MOST_SECONDS)
            code = process.exitcode
            process.kill()
            process.join()
            if tracer is not None:
                tracer.communicate()
            streams = (Path(f"{said}.{end}") for end in ("out", "err"))
            return Ended(code, *(one.read_text("utf-8", "replace") for one in streams))

        return end


def digests(name: str, place: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a command's that is the same each time."""
    found = {}
    with chdir(place):
        for pattern in typed(OUTPUTS[name]):
            for path in Path().glob(pattern):
                if path.is_file():
                    found[str(path)] = checksums.sha256(path)
    return found


def check(place: Path, task: str) -> None:
    """Raise where a model, record or archive is not whole, or not what its checksum says."""
    run = place / task / "models/small/seed2"
    for path in run.glob("*.safetensors"):
        describe_model(path)
    for path in run.glob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            json.loads(line)
    check_noted([*run.glob("*"), *(place / "paper").glob("*")])
    for path in (place / "out").glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            for line in archive.read("SHA256SUMS").decode().splitlines():
                digest, _, name = line.partition("  ")
                assert sha256(archive.read(name)).hexdigest() == digest, name


class Trials(Stage):
    """Pairs of commands, and what each of them makes alone."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, pause=0.03)
        self.alone: dict[str, dict[str, str]] = {}
        for name in names:
            trial = self.folder / f"{name} alone"
            place = self.copy(trial)
            ended = self.start(name, trial)()
            assert ended.code == 0, f"{name}: {ended.err}{ended.out}"
            self.alone[name] = digests(name, place)
            shutil.rmtree(trial)

    def fault(self, names: tuple[str, str], trial: Path) -> str | None:
        """Run a trial; return what was wrong, if anything was."""
        draw = random.Random(f"{names} {trial.name}")
        both = draw.sample(names, 2)
        offset = draw.choice((0.0, draw.uniform(0.0, MOST_OFFSET)))
        place = self.copy(trial)
        first = self.start(both[0], trial)
        time.sleep(offset)
        second = self.start(both[1], trial)
        for name, ended in zip(both, (first(), second()), strict=True):
            fault = ended.fault()
            if not fault and ended.code == 0:
                fault = self._wrong_output(name, both, place)
            if fault:
                return f"{both} {offset:.2f} s apart: {name}: {fault}"
        for name in names:
            fault = self.start(name, trial)().fault_alone(name)
            fault = fault or self._wrong_output(name, both, place)
            if fault:
                return f"{both}, each again: {name}: {fault}"
        found = (path for pattern in LEFTOVERS for path in place.rglob(pattern))
        left = [str(path) for path in found if not path.name.endswith(".log.lock")]
        return f"{both}: left behind: {left}" if left else None

    def _wrong_output(self, name: str, names: Sequence[str], place: Path) -> str | None:
        """Say what is wrong with a command's outputs; the other may write the same files."""
        made = digests(name, place)
        if absent := self.alone[name].keys() - made.keys():
            return f"not there: {sorted(absent)}"
        for path, digest in made.items():
            if digest not in {self.alone[each].get(path) for each in names}:
                return f"wrong bytes: {path}"
        try:
            check(place, self.task)
        except Exception as error:
            return f"its output is not whole: {type(error).__name__}: {error}"
        return None


def pairs(names: Sequence[str], trials: int) -> list[tuple[str, str]]:
    """Return the pairs of so many trials.

    Each command beside itself comes first, then beside each other, then beside itself again.
    """
    draw = random.Random(1)
    same = [(name, name) for name in names]
    others = []
    for pair in combinations(names, 2):
        if not {*pair} & WORKFLOW.keys() or {*pair} <= WITH_THE_WORKFLOW:
            others.append(pair)
    draw.shuffle(same)
    draw.shuffle(others)
    return [*same, *others, *islice(cycle(same), trials)][:trials]


def run(trials: int, names: Sequence[str] = tuple(OUTPUTS)) -> Counter[str]:
    """Run trials; print each fault, and count them."""
    counts = Counter(trials=trials)
    every = Trials(names)
    for number, pair in enumerate(pairs(names, trials)):
        trial = every.folder / f"trial{number}"
        if fault := every.fault(pair, trial):
            counts["faults"] += 1
            print(f"  {fault} (kept: {trial})", flush=True)
        else:
            shutil.rmtree(trial)
    every.close()
    print(f"pairs: {dict(counts)}")
    return counts
