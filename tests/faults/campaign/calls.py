"""System calls that fail, kills and power cuts, at drawn moments of every command that writes.

A trial lets one call of a command return an error (a full disk or quota, a broken disk, one that
became read-only, too many open files, a server that is gone), or kills the command when it enters
the call. In a power cut, files also lose what was written to them after they were last synced;
names are kept in their order, as a journal keeps them. What has its final name must then be whole,
or what it was before. The same command, run again, must end with the bytes of a run that nothing
disturbed.
"""

import json
import os
import random
import re
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from tests.faults.campaign import traced
from tests.faults.campaign.commands import Place
from tests.faults.campaign.pairs import Ended, add_inputs, prepare_by_hand
from tests.faults.campaign.traced import FILES_CHANGE, WRITES, Call
from tests.faults.campaign.writing import (
    REPLACES,
    TAKES_WHAT_IS_THERE,
    WRITING,
    add_further_inputs,
    perform_when_told,
)
from tests.faults.downloads import BODY, OTHER
from tests.faults.loopback import LoopbackServer, Served
from tests.support.hub import Hub

TRIALS = 1000
MOST_SECONDS = 120.0
"""In which a command ends."""

KILL = "SIGKILL"
CUTS = ("cut, files emptied", "cut, files halved")
"""Power cuts: what was not synced is lost, or half of it."""

ERRORS = {
    "openat": ("EMFILE", "ESTALE", "EIO", "EROFS"),
    **dict.fromkeys(WRITES, ("ENOSPC", "EDQUOT", "EIO", "ESTALE")),
    "fsync": ("ENOSPC", "EDQUOT", "EIO", "ESTALE"),
    "ftruncate": ("ENOSPC", "EIO", "ESTALE"),
    "mkdir": ("ENOSPC", "EDQUOT", "EIO", "ESTALE", "EROFS"),
    "rename": ("ENOSPC", "EDQUOT", "EIO", "ESTALE", "EROFS"),
}
"""Call -> the errors that it returns."""

TEMPORARY = re.compile(
    r"(^|/)(\.partial\.|state/|logs/|links\.zst\.state/)"
    r"|\.part(-\w+)?(\.json)?$|\.partial$|/\.[^/]+\.(lock|try)$"
)
"""Names that files have before they are whole, and of notes that a failure leaves on purpose."""

STAYS = re.compile(r"(^|/)logs/|/\.[^/]+\.try$|/\.partial\.\w+/\.?lock$")
"""Logs, notes of failed tries, and temporary folders with nothing but a lock in them."""

REMAINS = re.compile(rf"{STAYS.pattern}|/\.partial\.\w+/")
"""Also temporary folders that could not be removed; the next command that writes there does."""

FOLDERS = ("out/hub/", "out/onnx/", "out/pulled/", "out/exported/")
"""New folders, which are whole or absent."""

Files = dict[str, str]
"""Name of each file in a place -> its SHA-256."""


@dataclass(frozen=True)
class Disturbance:
    """What a trial does: at a call, an error, a kill or a power cut."""

    what: str
    call: Call | None

    def __str__(self) -> str:
        if self.call is None:
            return f"{self.what} after the end"
        names = " ".join(path.name for path in self.call.paths)
        return f"{self.what} at {self.call.name} {self.call.number} ({names})"

    def injected(self) -> list[str]:
        """Return what strace is told."""
        if self.call is None:
            return []
        deed = f"error={self.what}"
        if self.what in (KILL, *CUTS):
            deed = "signal=SIGKILL"
        return [f"{self.call.name}:{deed}:when={self.call.number}"]


@dataclass(frozen=True)
class Undisturbed:
    """What a command made when nothing disturbed it.

    Attributes:
        files: those that it leaves.
        varying: names of those whose bytes differ each time.
        out: what it prints; None: it differs each time.
        calls: of files in its place, or of what it prints.
    """

    files: Files
    varying: set[str]
    out: str | None
    calls: list[Call]


def files_of(folder: Path) -> Files:
    """Return the files of a place; a link to a folder is none."""
    found = {}
    for current, _, names in os.walk(folder):
        for name in names:
            path = Path(current, name)
            if not path.is_symlink():
                found[str(path.relative_to(folder))] = sha256(path)
    return found


def check_format(path: Path) -> None:
    """Raise where a file whose bytes differ each time is not whole."""
    if path.suffix == ".json" or path.name.endswith(".made"):
        json.loads(path.read_text("utf-8"))
    elif path.suffix == ".jsonl":
        for line in path.read_text("utf-8").splitlines(keepends=True):
            assert line.endswith("\n"), "its last line is cut"
            json.loads(line)
    elif path.suffix == ".safetensors":
        load_tensors(path)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
    else:
        assert path.stat().st_size > 0, "it is empty"


def unsynced(calls: Sequence[Call]) -> dict[Path, tuple[int, int]]:
    """Return the bytes of each file that are synced, and those that are not."""
    sizes: dict[Path, tuple[int, int]] = {}
    for call in calls:
        if call.result is None or not call.paths:
            continue
        path = call.paths[0]
        if call.name == "openat":
            if (
                re.search(r"O_CREAT|O_TRUNC", call.words)
                and "O_APPEND" not in call.words
            ):
                sizes[path] = (0, 0)
        elif call.name in WRITES:
            synced, more = sizes.get(path, (0, 0))
            sizes[path] = synced, more + call.result
        elif call.name in ("fsync", "fdatasync"):
            sizes[path] = sum(sizes.get(path, (0, 0))), 0
        elif call.name.startswith("rename"):
            for name in list(sizes):
                if name.is_relative_to(path):
                    sizes[call.paths[1] / name.relative_to(path)] = sizes.pop(name)
        elif call.name.startswith("link"):
            sizes[call.paths[1]] = sizes.get(path, (0, 0))
    return {path: size for path, size in sizes.items() if size[1]}


class Trials:
    """Runs commands in copies of a prepared folder, and disturbs them."""

    def __init__(
        self, folder: Path, server: LoopbackServer, hub: Hub, names: Sequence[str]
    ) -> None:
        """Prepare the folder that all trials of these commands begin with."""
        self._folder = folder
        before = folder / "before"
        task = prepare_by_hand(before)
        add_inputs(before)
        add_further_inputs(before)
        served = {"corpus.tgz": BODY, "known.tgz": OTHER}
        served["runs.jsonl"] = (before / "runs.jsonl").read_bytes()
        for path, body in served.items():
            server.serve(f"/{path}", Served(body))
        os.environ |= {
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(folder / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["tests.faults.campaign.writing"])
        self._before = Place(before, task, f"http://{server.host}")
        self._initial = files_of(before)
        self._undisturbed: dict[str, Undisturbed] = {}
        if "pull" in names:
            _, place = self.run("export hub", folder / "hub")
            for file in (place.folder / "out/hub").iterdir():
                hub.files[file.name] = file.read_bytes()

    def run(
        self, name: str, folder: Path, *injected: str, traced_in: Path | None = None
    ) -> tuple[Ended, Place]:
        """Run a command in a place, which is made first where it is not there."""
        place = replace(self._before, folder=folder / "place")
        if not place.folder.exists():
            self._copy(place.folder)
        said = folder / "said"
        here, there = self._context.Pipe()
        process = self._context.Process(
            target=perform_when_told, args=(there, name, place, said)
        )
        process.start()
        here.recv()
        assert process.pid is not None
        tracer = None
        if traced_in is not None:
            tracer = traced.attach(process.pid, traced_in, *injected)
        here.send(None)
        process.join(MOST_SECONDS)
        code = process.exitcode
        process.kill()
        process.join()
        if tracer is not None:
            tracer.communicate()
        out, err = (Path(f"{said}.{end}") for end in ("out", "err"))
        texts = [
            path.read_text("utf-8", "replace") if path.exists() else ""
            for path in (out, err)
        ]
        for path in (out, err):
            path.unlink(missing_ok=True)
        return Ended(code, *texts), place

    def _copy(self, folder: Path) -> None:
        shutil.copytree(self._before.folder, folder, symlinks=True)

    def _add_older(self, name: str, folder: Path) -> Files:
        """Make the place of a trial; where a command replaces its outputs, with older ones."""
        self._copy(folder / "place")
        added = {}
        for path in self.undisturbed(name).files.keys() - self._initial.keys():
            is_output = not TEMPORARY.search(path) and not Path(path).name.startswith(
                "."
            )
            if name in REPLACES and is_output:
                output = folder / "place" / path
                output.parent.mkdir(parents=True, exist_ok=True)
                output.write_text("older\n")
                added[path] = sha256(output)
        return added

    def _is_elsewhere(self, log: Path, folder: Path) -> bool:
        """Return whether another call failed than one that was meant, as numbers vary a little."""
        failed = [
            call for call in traced.calls(log, folder / "place") if call.is_injected
        ]
        return any(not self._is_disturbed(call, folder) for call in failed)

    def undisturbed(self, name: str) -> Undisturbed:
        """Run a command twice, with nothing that disturbs it."""
        if name not in self._undisturbed:
            found = []
            for number in (1, 2):
                folder = self._folder / f"alone-{number}"
                log = self._folder / "alone.log"
                ended, place = self.run(name, folder, traced_in=log)
                assert ended.code == 0, f"{name}: {ended.err}{ended.out}"
                found.append((files_of(place.folder), ended.out))
                every = list(traced.calls(log, place.folder))
                # Where threads share a number, strace cannot be told which of them is meant.
                meant = Counter((call.name, call.number) for call in every)
                seen = []
                for call in every:
                    is_alone = meant[call.name, call.number] == 1
                    if is_alone and self._is_disturbed(call, folder):
                        seen.append(call)
                shutil.rmtree(folder)
            (first, out), (second, other) = found
            varying = {path for path in first if first[path] != second.get(path)}
            self._undisturbed[name] = Undisturbed(
                first, varying, out if out == other else None, seen
            )
        return self._undisturbed[name]

    @staticmethod
    def _is_disturbed(call: Call, folder: Path) -> bool:
        """Return whether a call is about a file of the place, or writes what is printed."""
        if any(path.is_relative_to(folder / "place") for path in call.paths):
            return True
        return call.name == "write" and call.paths == (folder / "said.out",)

    def disturbances(self, name: str, trials: int) -> list[Disturbance]:
        """Draw what disturbs a command: two thirds errors and kills, one third power cuts."""
        draw = random.Random(name)
        every = self.undisturbed(name).calls
        errors = [
            Disturbance(what, call)
            for call in every
            for what in (*ERRORS.get(call.name, ()), KILL)
            if call.name in ERRORS
        ]
        cuts = []
        for what in CUTS:
            cuts.append(Disturbance(what, None))
            for call in every:
                if call.name in FILES_CHANGE:
                    cuts.append(Disturbance(what, call))
        few = min(len(cuts), trials // 3)
        return draw.sample(cuts, few) + draw.sample(
            errors, min(len(errors), trials - few)
        )

    def fault(
        self, name: str, one: Disturbance, folder: Path
    ) -> tuple[str, str | None]:
        """Run a trial; return how the command ended, and what was wrong, if anything was."""
        whole = self.undisturbed(name)
        log = folder.with_suffix(".log")
        before = self._initial | self._add_older(name, folder)
        ended, place = self.run(name, folder, *one.injected(), traced_in=log)
        if self._is_elsewhere(log, folder):
            return "elsewhere", None
        verdict = "done" if ended.code == 0 else "refused"
        if one.what in CUTS:
            verdict = "cut"
            self._lose_unsynced(log, place, halved=one.what == CUTS[1])
        elif ended.code == -9:
            verdict = "killed"
        if one.what not in CUTS and ended.code != -9:
            fault = ended.fault()
            if fault is None and ended.code != 0:
                fault = self._unnamed(ended, one)
            if fault is None and ended.code == 0:
                fault = self._unlike(name, place, REMAINS)
                if fault is None and whole.out not in (None, ended.out):
                    fault = f"prints otherwise: {ended.out[:500]}"
            if fault is not None:
                return verdict, fault
        if fault := self._torn(whole, before, place):
            return verdict, fault
        if verdict == "done":
            return verdict, None
        again, _ = self.run(name, folder)
        refusal = WRITING[name].refusal
        if again.code != 0 and not (refusal and refusal in again.err):
            return verdict, f"again: {again.code}: {again.err[-1500:]}"
        # What does not write again leaves the rest of a kill to the next command that does.
        is_done = again.code != 0 or name in TAKES_WHAT_IS_THERE
        stays = TEMPORARY if is_done else STAYS
        fault = self._unlike(name, place, stays)
        return verdict, None if fault is None else f"again: {fault}"

    @staticmethod
    def _lose_unsynced(log: Path, place: Place, *, halved: bool) -> None:
        """Do to the files of a place what a power cut does."""
        for path, (synced, more) in unsynced(
            list(traced.calls(log, place.folder))
        ).items():
            if path.is_relative_to(place.folder) and path.is_file():
                size = synced + (more // 2 if halved else 0)
                if path.stat().st_size > size:
                    os.truncate(path, size)

    @staticmethod
    def _unnamed(ended: Ended, one: Disturbance) -> str | None:
        """Say where an error names neither a file nor the standard output."""
        (line,) = [text for text in ended.err.splitlines() if "error: " in text][:1]
        if re.search(r"error: (the output |\S+[:,] )", line):
            return None
        return f"names no file: {line}"

    def _torn(self, whole: Undisturbed, before: Files, place: Place) -> str | None:
        """Say what is neither whole nor what it was before the command."""
        found = files_of(place.folder)
        for path, digest in found.items():
            if TEMPORARY.search(path) or digest == before.get(path):
                continue
            if path in whole.varying:
                try:
                    check_format(place.folder / path)
                except Exception as error:
                    return f"torn: {path}: {type(error).__name__}: {error}"
            elif digest != whole.files.get(path):
                return f"torn: {path}"
        lost = (whole.files.keys() & before.keys()) - found.keys()
        if lost:
            return f"lost: {sorted(lost)}"
        for folder in FOLDERS:
            expected = {path for path in whole.files if path.startswith(folder)}
            made = expected & found.keys()
            if made and made != expected:
                return f"in part: {folder}: {sorted(expected - made)} are not there"
        return None

    def _unlike(self, name: str, place: Place, stays: re.Pattern[str]) -> str | None:
        """Say in what a place differs from the one of a run that nothing disturbed."""
        whole = self.undisturbed(name)
        found = files_of(place.folder)
        if absent := whole.files.keys() - found.keys():
            return f"not there: {sorted(absent)}"
        more = found.keys() - whole.files.keys()
        if left := [path for path in sorted(more) if not stays.search(path)]:
            return f"left behind: {left}"
        for path, digest in whole.files.items():
            if path not in whole.varying and found[path] != digest:
                return f"wrong bytes: {path}"
        return None


def run(
    trials: int,
    names: Sequence[str] = tuple(WRITING),
    say: Callable[[str], object] = print,
) -> dict[str, Counter[str]]:
    """Run so many trials, as many of each command; say each fault, and count the verdicts."""
    counts: dict[str, Counter[str]] = {}
    server = LoopbackServer()
    hub = Hub()
    folder = Path(tempfile.mkdtemp(prefix="convs2s-calls-"))
    try:
        every = Trials(folder, server, hub, names)
        for name in names:
            counts[name] = Counter()
            drawn = every.disturbances(name, -(-trials // len(names)))
            for number, one in enumerate(drawn):
                place = folder / f"{name.replace(' ', '-')}-{number}"
                verdict, fault = every.fault(name, one, place)
                counts[name]["faults" if fault else verdict] += 1
                if fault:
                    say(f"  {name}: {one}: {fault} (kept: {place})")
                else:
                    shutil.rmtree(place)
                    place.with_suffix(".log").unlink()
            say(f"{name:24} {dict(sorted(counts[name].items()))}")
    finally:
        server.close()
        hub.close()
    shutil.rmtree(folder / "before")
    return counts


def main() -> None:
    """Run trials, of all commands or of those named; exit with 1 where one found a fault."""
    if not traced.is_available():
        print("calls: not tried: strace is not installed, or may not trace")
        return
    names = sys.argv[2:] or list(WRITING)
    counts = run(int(sys.argv[1]) if sys.argv[1:] else TRIALS, names)
    whole: Counter[str] = sum(counts.values(), Counter())
    print(f"calls: {whole.total()} trials of {len(counts)} commands: {dict(whole)}")
    sys.exit(1 if whole["faults"] else 0)


if __name__ == "__main__":
    main()
