"""Two commands at once in one folder: right bytes or one clear line, and nothing to remove by hand.

A trial starts both, the second up to a second later, then each again by itself, which must do its
work with nothing removed before. Moments and pairs are drawn by a seed.
"""

import argparse
import hashlib
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from itertools import combinations, cycle, islice
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from convs2s.files.checksums import sha256
from convs2s.files.text import write_lines
from convs2s.layout import TaskFolder
from tests.faults.pair_commands import COMMANDS, TABLE, Place, perform, scored_cells
from tests.support import own_pair, tiny
from tests.support.cells import bleu, cells, write
from tests.support.checkout import Checkout, check_out
from tests.support.downloads import BODY, OTHER
from tests.support.golden import DATA
from tests.support.loopback import LoopbackServer, Served
from tests.support.tiny_results import write_results

TRIALS = 200
MOST_OFFSET = 1.0
"""Seconds between the two starts; at most as long as the first command takes alone."""

MOST_SECONDS = 300.0
"""In which a process ends."""

ENDED_EARLY = 75
"""The exit code of what the same command resumes."""

LEFTOVERS = (".partial.*", "*.part", "*.part-*", "*.part.json", ".*.lock")
"""What nothing may leave behind, wherever."""

JOBS_LOCK = ".log.lock"
"""The end of the name of what a job locks beside its log, which stays."""

CLEAR = r"(convs2s: )?error: |Error: Directory cannot be locked\. "
"""How the line begins in which a command, or Snakemake itself, says why it does not work."""

PAUSE = 0.03
"""Seconds before each tenth of what the server sends."""

WITH_THE_WORKFLOW = (
    "workflow",
    "plan",
    "train",
    "remove-states",
    "status",
    "export",
    "translate",
)
"""What a workflow's run is tried beside: it takes long, and shares no file with the others."""

ROOT = Path(__file__).resolve().parents[2]
OWN = {"headline": {"seeds": [1]}, "vocabulary": {"merges": 40}}
OPTIONS = {
    "device": "cpu",
    "cores": 1,
    "overrides": {"models": {"small": own_pair.TINY}, "tasks": {"mine_en_nl": OWN}},
}


@dataclass(frozen=True)
class Alone:
    """What a command does where nobody else works.

    Attributes:
        outputs: the SHA-256 of each file that is the same each time, by its path in the folder.
        seconds: how long it takes.
    """

    outputs: Mapping[str, str]
    seconds: float


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (None: it was killed, as it did not) and its streams."""

    code: int | None
    out: str
    err: str

    def fault(self) -> str | None:
        """Say what is wrong with how a command ended that may be refused."""
        if self.code is None:
            return f"has not ended after {MOST_SECONDS:g} s"
        if "Traceback" in self.err + self.out:
            return f"a traceback: {self.err[-1500:]}"
        if self.code in (0, ENDED_EARLY):
            return None
        clear = [line for line in self.err.splitlines() if re.match(CLEAR, line)]
        if self.code != 1 or len(clear) != 1:
            return (
                f"exit code {self.code}, in place of one clear line: {self.err[-1500:]}"
            )
        return None


def prepare_by_hand(folder: Path) -> str:
    """Write what the commands read, without the workflow; return the folder of the task."""
    shutil.copytree(ROOT / "config", folder / "config")
    shutil.copy(ROOT / "config.yaml", folder)
    # Manifests hold paths as the workflow names them.
    with chdir(folder), tiny.whole_states():
        write_results(TaskFolder("results/tiny"))
    return "results/tiny"


def prepare_by_workflow(folder: Path) -> str:
    """Likewise of a checkout in which the workflow has run."""
    checkout = Checkout(check_out(ROOT, folder.parent).folder.rename(folder))
    own_pair.write_text(checkout)
    own_pair.write_tasks(ROOT, checkout)
    checkout.configure(OPTIONS)
    checkout.snakemake("results/mine_en_nl/bleu.txt").succeeded()
    return "results/mine_en_nl"


def add_inputs(folder: Path, task: str) -> None:
    """Write what the commands read that has nothing to do with the task."""
    shutil.copytree(DATA / "fairseq_random", folder / "fairseq")
    for name in ("out", "paper"):
        (folder / name).mkdir()
    (folder / task / "models/small/seed2").mkdir()
    lines = (
        (ROOT / "docs/results/multi30k.ledger.jsonl").read_text("utf-8").splitlines()
    )
    write_lines(folder / "runs.jsonl", lines[::20])
    words = random.Random(1)
    write_lines(
        folder / "text.en",
        (" ".join(words.choices(tiny.WORDS, k=6)) for _ in range(60)),
    )
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
        is_workflow = any(COMMANDS[name].is_workflow for name in names)
        self._folder, self._server = folder, server
        self._before = folder / "before"
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.pair_commands"])
        if is_workflow:
            task = prepare_by_workflow(self._before)
        else:
            self._before.mkdir()
            task = prepare_by_hand(self._before)
        add_inputs(self._before, task)
        url = self._serve()
        self._place = Place(self._before, task, url, hashlib.sha256(OTHER).hexdigest())
        self.alone = {name: self._run_alone(name) for name in names}

    def _serve(self) -> str:
        url = self._server.serve("/corpus.tgz", Served(BODY, pause=PAUSE))
        self._server.serve("/known.tgz", Served(OTHER, pause=PAUSE))
        ledger = (self._before / "runs.jsonl").read_bytes()
        self._server.serve("/runs.jsonl", Served(ledger, pause=PAUSE))
        return url.removesuffix("/corpus.tgz")

    def _copy(self, name: str) -> Place:
        folder = self._folder / name
        shutil.copytree(self._before, folder, symlinks=True)
        return replace(self._place, folder=folder)

    def _run_alone(self, name: str) -> Alone:
        place = self._copy(f"{name} alone")
        started = time.monotonic()
        (ended,) = self._run(place, [name], 0.0)
        seconds = time.monotonic() - started
        assert ended.code == 0, f"{name}: {ended.err}{ended.out}"
        outputs = _outputs(name, place)
        assert outputs or not COMMANDS[name].outputs, name
        shutil.rmtree(place.folder)
        return Alone(outputs, seconds)

    def _run(self, place: Place, names: Sequence[str], offset: float) -> list[Ended]:
        """Run commands at once, each begun so many seconds after the one before."""
        begun: list[tuple[ForkServerProcess, Path]] = []
        for number, name in enumerate(names):
            if number:
                time.sleep(offset)
            said = place.folder / f"said{number}"
            process = self._context.Process(target=perform, args=(name, place, said))
            process.start()
            begun.append((process, said))
        end = time.monotonic() + MOST_SECONDS
        return [_ended(process, said, end) for process, said in begun]

    def fault(self, names: tuple[str, str], number: int) -> str | None:
        """Run a trial; return what was wrong, if anything was."""
        generator = random.Random(f"{names} {number}")
        names = (
            (names[0], names[1]) if generator.random() < 0.5 else (names[1], names[0])
        )
        offset = generator.choice(
            (0.0, generator.uniform(0.0, self.alone[names[0]].seconds))
        )
        place = self._copy(f"trial{number}")
        offset = min(offset, MOST_OFFSET)
        fault = self._tried(place, names, offset)
        if fault is None:
            shutil.rmtree(place.folder)
            return None
        return f"{' + '.join(names)}, {offset:.2f} s apart: {fault}"

    def _tried(self, place: Place, names: tuple[str, str], offset: float) -> str | None:
        both = self._run(place, names, offset)
        for name, ended in zip(names, both, strict=True):
            fault = ended.fault()
            if fault is None and ended.code == 0:
                fault = self._wrong_output(name, names, place)
            if fault:
                return f"{name}: {fault}"
        for name in dict.fromkeys(names):
            (again,) = self._run(place, [name], 0.0)
            refusal = COMMANDS[name].refusal
            if again.code != 0 and not (refusal and refusal in again.err):
                return f"{name} again: exit code {again.code}: {again.err[-1500:]}"
            if fault := self._wrong_output(name, names, place):
                return f"{name} again: {fault}"
        found = (path for pattern in LEFTOVERS for path in place.folder.rglob(pattern))
        left = [str(path) for path in found if not path.name.endswith(JOBS_LOCK)]
        return f"left behind: {left}" if left else None

    def _wrong_output(
        self, name: str, names: Sequence[str], place: Place
    ) -> str | None:
        """Say what is wrong with a command's outputs; the other may write the same files."""
        made = _outputs(name, place)
        absent = self.alone[name].outputs.keys() - made.keys()
        if absent:
            return f"not there: {sorted(absent)}"
        for path, digest in made.items():
            if digest not in {self.alone[each].outputs.get(path) for each in names}:
                return f"wrong bytes: {path}"
        try:
            COMMANDS[name].check(place)
        except Exception as error:
            return f"its output is not whole: {type(error).__name__}: {error}"
        return None


def _ended(process: ForkServerProcess, said: Path, end: float) -> Ended:
    process.join(max(0.0, end - time.monotonic()))
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    process.close()
    streams = [said.with_name(f"{said.name}.{suffix}") for suffix in ("out", "err")]
    return Ended(code, *(path.read_text("utf-8", "replace") for path in streams))


def _outputs(name: str, place: Place) -> dict[str, str]:
    patterns = [pattern.format(task=place.task) for pattern in COMMANDS[name].outputs]
    paths = {
        path
        for pattern in patterns
        for path in place.folder.glob(pattern)
        if path.is_file()
    }
    return {str(path.relative_to(place.folder)): sha256(path) for path in paths}


def pairs(names: Sequence[str], trials: int, number: int) -> list[tuple[str, str]]:
    """Return the pairs of so many trials.

    Each command beside itself comes first, then beside each other, then beside itself again.
    """
    generator = random.Random(number)
    same = [(name, name) for name in names]
    others = [
        pair
        for pair in combinations(names, 2)
        if all(
            set(pair) <= {*WITH_THE_WORKFLOW}
            for name in pair
            if COMMANDS[name].is_workflow
        )
    ]
    generator.shuffle(same)
    generator.shuffle(others)
    return [*same, *others, *islice(cycle(same), max(0, trials))][:trials]


def run(
    trials: int,
    number: int,
    names: Sequence[str] = tuple(COMMANDS),
    say: Callable[[str], None] = print,
) -> tuple[Counter[tuple[str, str]], int]:
    """Run trials; return how many there were of each pair, and how many found a fault."""
    counts: Counter[tuple[str, str]] = Counter()
    faults = 0
    server = LoopbackServer()
    folder = Path(tempfile.mkdtemp(prefix="convs2s-pairs-"))
    try:
        every = Trials(folder, server, names)
        for trial, pair in enumerate(pairs(names, trials, number)):
            counts[pair] += 1
            if fault := every.fault(pair, trial):
                faults += 1
                say(f"  {fault} (kept: {folder}/trial{trial})")
    finally:
        server.close()
        if not faults:
            shutil.rmtree(folder)
    return counts, faults


def main() -> None:
    """Run trials; exit with 1 where one found a fault."""
    parser = argparse.ArgumentParser(description="Two commands at once in one folder.")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"[{TRIALS}]")
    parser.add_argument("--seed", type=int, default=1, help="of pairs and moments [1]")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=[*COMMANDS])
    arguments = parser.parse_args()
    counts, faults = run(arguments.trials, arguments.seed, arguments.commands)
    for pair, count in counts.items():
        print(f"{' + '.join(pair):36} {count}")
    print(
        f"pairs: {sum(counts.values())} trials of {len(counts)} pairs, {faults} faults"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
