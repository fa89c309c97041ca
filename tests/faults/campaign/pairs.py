"""Two commands at once in one folder: right bytes or one clear line, and nothing to remove by hand.

A trial starts both, the second up to a second later, then each again by itself, which must do its
work with nothing removed before. Moments and pairs are drawn, the same each time.
"""

import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from itertools import combinations, cycle, islice
from multiprocessing import get_context
from pathlib import Path

from convs2s.files.checksums import sha256
from convs2s.files.text import write_lines
from convs2s.layout import TaskFolder
from convs2s.paper.cells import cells
from tests.faults.campaign.commands import COMMANDS, TABLE, Place, perform, scored_cells
from tests.faults.campaign.samples import ROOT
from tests.faults.downloads import BODY, OTHER
from tests.faults.loopback import LoopbackServer, Served
from tests.support import own_pair, tiny
from tests.support.cells import bleu, write
from tests.support.checkout import Checkout, check_out
from tests.support.golden import DATA
from tests.support.tiny_results import write_results

TRIALS = 200
MOST_OFFSET = 1.0
"""Seconds between the two starts."""
MOST_SECONDS = 300.0
"""In which a process ends."""
LEFTOVERS = (".partial.*", "*.part", "*.part-*", "*.part.json", ".*.lock")
"""What nothing may leave behind, wherever; but what a job locks beside its log, which stays."""
CLEAR = r"(convs2s: )?error: |Error: Directory cannot be locked\. "
"""How the line begins in which a command, or Snakemake itself, says why it does not work."""
WITH_THE_WORKFLOW = {
    "workflow",
    "plan",
    "train",
    "remove-states",
    "status",
    "export",
    "translate",
}
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


def prepare_by_hand(folder: Path) -> str:
    """Write what the commands read, without the workflow; return the folder of the task."""
    shutil.copytree(ROOT / "config", folder / "config")
    shutil.copy(ROOT / "config.yaml", folder)
    # Manifests hold paths as the workflow names them.
    with chdir(folder), tiny.whole_states():
        write_results(TaskFolder("results/tiny"))
    (folder / "results/tiny/models/small/seed2").mkdir()
    return "results/tiny"


def _prepare_by_workflow(folder: Path) -> str:
    """Likewise of a checkout in which the workflow has run."""
    checkout = Checkout(check_out(ROOT, folder.parent).folder.rename(folder))
    own_pair.write_text(checkout)
    own_pair.write_tasks(ROOT, checkout)
    checkout.configure({"device": "cpu", "cores": 1, "overrides": OVERRIDES})
    checkout.snakemake("results/mine_en_nl/bleu.txt").succeeded()
    (folder / "results/mine_en_nl/models/small/seed2").mkdir()
    return "results/mine_en_nl"


def add_inputs(folder: Path) -> None:
    """Write what the commands read that has nothing to do with the task."""
    shutil.copytree(DATA / "fairseq_random", folder / "fairseq")
    for name in ("out", "paper"):
        (folder / name).mkdir()
    ledger = (ROOT / "docs/results/multi30k.ledger.jsonl").read_text("utf-8")
    write_lines(folder / "runs.jsonl", ledger.splitlines()[::20])
    draw = random.Random(1)
    lines = (" ".join(draw.choices(tiny.WORDS, k=6)) for _ in range(60))
    write_lines(folder / "text.en", lines)
    with chdir(folder):
        settings, _ = scored_cells()
        for number, cell in enumerate(cells(settings, TABLE)[:6]):
            if cell.address.column == "bleu":
                write(cell.paths[0], bleu(20.0 + number, 19.0))


class Trials:
    """Runs pairs of commands in copies of a prepared folder."""

    def __init__(
        self, folder: Path, server: LoopbackServer, names: Sequence[str]
    ) -> None:
        """Prepare the folder that all trials begin with, and run each command alone."""
        before = folder / "before"
        if any(COMMANDS[name].is_workflow for name in names):
            task = _prepare_by_workflow(before)
        else:
            task = prepare_by_hand(before)
        add_inputs(before)
        served = {
            "known.tgz": OTHER,
            "runs.jsonl": (before / "runs.jsonl").read_bytes(),
        }
        for path, body in ({"corpus.tgz": BODY} | served).items():
            server.serve(f"/{path}", Served(body, pause=0.03))
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.campaign.commands"])
        self._before = Place(before, task, f"http://{server.host}")
        self.alone: dict[str, dict[str, str]] = {}
        for name in names:
            place = self._copy(folder / f"{name} alone")
            (ended,) = self._run(place, [name], 0.0)
            assert ended.code == 0, f"{name}: {ended.err}{ended.out}"
            self.alone[name] = _outputs(name, place)
            shutil.rmtree(place.folder)

    def _copy(self, folder: Path) -> Place:
        shutil.copytree(self._before.folder, folder, symlinks=True)
        return replace(self._before, folder=folder)

    def _run(self, place: Place, names: Sequence[str], offset: float) -> list[Ended]:
        """Run commands at once, each begun so many seconds after the one before."""
        begun = []
        for number, name in enumerate(names):
            time.sleep(offset if number else 0.0)
            said = place.folder / f"said {time.monotonic_ns()}"
            process = self._context.Process(target=perform, args=(name, place, said))
            process.start()
            begun.append((process, said))
        found = []
        for process, said in begun:
            process.join(MOST_SECONDS)
            code = process.exitcode
            process.kill()
            process.join()
            out = Path(f"{said}.out").read_text("utf-8", "replace")
            err = Path(f"{said}.err").read_text("utf-8", "replace")
            found.append(Ended(code, out, err))
        return found

    def fault(self, names: tuple[str, str], folder: Path) -> str | None:
        """Run a trial; return what was wrong, if anything was."""
        draw = random.Random(f"{names} {folder.name}")
        both = draw.sample(names, 2)
        offset = draw.choice((0.0, draw.uniform(0.0, MOST_OFFSET)))
        place = self._copy(folder)
        ends = self._run(place, both, offset)
        for name, ended in zip(both, ends, strict=True):
            fault = ended.fault()
            if not fault and ended.code == 0:
                fault = self._wrong_output(name, both, place)
            if fault:
                return f"{both} {offset:.2f} s apart: {name}: {fault}"
        for name in names:
            (again,) = self._run(place, [name], 0.0)
            refusal = COMMANDS[name].refusal
            if again.code != 0 and not (refusal and refusal in again.err):
                return f"{both}: {name} again: {again.code}: {again.err[-1500:]}"
            if fault := self._wrong_output(name, both, place):
                return f"{both}: {name} again: {fault}"
        found = (path for pattern in LEFTOVERS for path in place.folder.rglob(pattern))
        left = [str(path) for path in found if not path.name.endswith(".log.lock")]
        return f"{both}: left behind: {left}" if left else None

    def _wrong_output(
        self, name: str, names: Sequence[str], place: Place
    ) -> str | None:
        """Say what is wrong with a command's outputs; the other may write the same files."""
        made = _outputs(name, place)
        absent = self.alone[name].keys() - made.keys()
        if absent:
            return f"not there: {sorted(absent)}"
        for path, digest in made.items():
            if digest not in {self.alone[each].get(path) for each in names}:
                return f"wrong bytes: {path}"
        try:
            COMMANDS[name].check(place)
        except Exception as error:
            return f"its output is not whole: {type(error).__name__}: {error}"
        return None


def _outputs(name: str, place: Place) -> dict[str, str]:
    """Return the SHA-256 of each file that is the same each time."""
    found = {}
    for pattern in place.words(COMMANDS[name].outputs):
        for path in place.folder.glob(pattern):
            if path.is_file():
                found[str(path.relative_to(place.folder))] = sha256(path)
    return found


def pairs(names: Sequence[str], trials: int) -> list[tuple[str, str]]:
    """Return the pairs of so many trials.

    Each command beside itself comes first, then beside each other, then beside itself again.
    """
    draw = random.Random(1)
    same = [(name, name) for name in names]
    others = []
    for pair in combinations(names, 2):
        is_workflow = any(COMMANDS[name].is_workflow for name in pair)
        if not is_workflow or {*pair} <= WITH_THE_WORKFLOW:
            others.append(pair)
    draw.shuffle(same)
    draw.shuffle(others)
    return [*same, *others, *islice(cycle(same), trials)][:trials]


def run(
    trials: int,
    names: Sequence[str] = tuple(COMMANDS),
    say: Callable[[str], object] = print,
) -> Counter[tuple[str, str]]:
    """Run trials, and say each fault; return how many there were of each pair."""
    counts: Counter[tuple[str, str]] = Counter()
    server = LoopbackServer()
    folder = Path(tempfile.mkdtemp(prefix="convs2s-pairs-"))
    try:
        every = Trials(folder, server, names)
        for number, pair in enumerate(pairs(names, trials)):
            counts[pair] += 1
            place = folder / f"trial{number}"
            if fault := every.fault(pair, place):
                say(f"  {fault} (kept: {place})")
            else:
                shutil.rmtree(place)
    finally:
        server.close()
    shutil.rmtree(folder / "before")
    return counts


def main() -> None:
    """Run trials; exit with 1 where one found a fault."""
    faults: list[str] = []
    counts = run(TRIALS, say=faults.append)
    print(*faults, sep="\n")
    print(
        f"pairs: {counts.total()} trials of {len(counts)} pairs, {len(faults)} faults"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
