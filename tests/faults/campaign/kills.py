"""Seeded kills in every stage of a small run; the same command again must end with the same files.

A run is killed as a whole, as one of its processes, or as Snakemake alone, which leaves its jobs.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from convs2s.files.checksums import sha256
from convs2s.mirror.write import write_mirror
from tests.support.checkout import Checkout, check_out
from tests.support.mirror import DEVICE, add_mirror

KILLS = 300
IN_A_ROW = 5
"""Kills of one run, which then goes on from where the last of them left it."""
MOST_SECONDS = 600.0
"""In which the same command ends well after a kill: jobs that outlived Snakemake are waited for."""

SECONDS_TO_WAIT = 5.0

WAYS = ("group", "one", "alone")

ROOT = Path(__file__).resolve().parents[2]
TASK = "results/demo_en_fr"
RUN = f"{TASK}/models/demo/seed1"
MIRROR = "results/scales/mirror"
SUFFIXES = {
    ".arrow",
    ".tsv",
    ".zst",
    ".safetensors",
    ".jsonl",
    ".txt",
    ".gz",
    ".tgz",
    "",
}
"""Of files whose bytes depend on nothing but their inputs."""


@dataclass(frozen=True)
class Stage:
    """A stage of a run.

    Attributes:
        name: for reports.
        target: what is asked for; that of the stage before is there.
        at_mirror: whether it runs at the scale of the mirror, which downloads.
    """

    name: str
    target: str
    at_mirror: bool = False


STAGES = (
    Stage(
        "download", f"{MIRROR}/wmt16_en_ro/corpus/raw/valid.source.zst", at_mirror=True
    ),
    Stage("prepare", f"{TASK}/dataset/train.arrow"),
    Stage("align", f"{TASK}/alignment/dictionary.tsv"),
    Stage("train", f"{RUN}/model.safetensors"),
    Stage("decode", f"{RUN}/test.beam5.jsonl"),
    Stage("score", f"{TASK}/bleu.txt"),
)

BLOCKS = [{"layers": 1, "width": 16, "kernel": 3}]
MODEL = {
    "architecture": {
        "embedding": 16,
        "output_embedding": 16,
        "encoder": BLOCKS,
        "decoder": BLOCKS,
    },
    "training": {"maximum_epochs": 2, "checkpoint_minutes": 1 / 60},
}
OPTIONS = {
    "device": "cpu",
    "cores": 2,
    "overrides": {
        "models": {"demo": MODEL},
        "tasks": {"demo_en_fr": {"headline": {"seeds": [1]}}},
    },
}


def start(checkout: Checkout, target: str) -> subprocess.Popen[bytes]:
    """Start the workflow in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", target],
        cwd=checkout.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[bytes], way: str, generator: random.Random) -> None:
    """Kill all of a run, one of its processes, or Snakemake alone."""
    if way == "group":
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)
    elif way == "alone":
        process.kill()
    else:
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(process.pid).children(recursive=True)
            chosen = (
                generator.choice(sorted(below, key=lambda one: one.pid))
                if below
                else None
            )
            if chosen is not None:
                chosen.kill()
    process.wait()


def results(checkout: Checkout) -> dict[str, str]:
    """Return the checksums of a run's files by their names; times and states are none of them."""
    if not (checkout / "results").is_dir():
        return {}
    names = [Path(name) for name in checkout.files("results")]
    return {
        str(name): sha256(checkout / str(name))
        for name in names
        if name.suffix in SUFFIXES
        and name.name != "history.jsonl"
        and not {"state", "archives"} & {*name.parts}
        and not any(part.startswith(".partial.") for part in name.parts)
    }


@dataclass(frozen=True)
class Undisturbed:
    """A stage that nobody killed.

    Attributes:
        before: the checkout in which it begins.
        results: the checksums of what is there at its end.
        seconds: how long it took.
    """

    before: Checkout
    results: dict[str, str]
    seconds: float


def undisturbed(checkout: Checkout, stage: Stage, kept: Path) -> Undisturbed:
    """Run a stage to its end in ``checkout``; keep a copy of the checkout before it."""
    kept.mkdir()
    before = checkout.copy(kept)
    started = time.monotonic()
    checkout.snakemake(stage.target).succeeded()
    return Undisturbed(before, results(checkout), time.monotonic() - started)


def disturbed(
    whole: Undisturbed, stage: Stage, most: int, number: int, folder: Path
) -> tuple[int, str | None]:
    """Kill a stage's runs one after another, then let one end.

    Returns:
        How many were killed, at most ``most`` (fewer where a run came to its end first), and what
        went wrong, if anything did.
    """
    folder.mkdir()
    generator = random.Random(f"{stage.name} {number}")
    checkout = whole.before.copy(folder)
    killed = 0
    while killed < most:
        process = start(checkout, stage.target)
        with suppress(subprocess.TimeoutExpired):
            process.wait(generator.uniform(0, whole.seconds))
        if process.poll() == 0:
            break
        # Jobs that outlived the run before are not written beside.
        if process.poll() is not None:
            time.sleep(SECONDS_TO_WAIT)
            continue
        way = WAYS[(number + killed) % len(WAYS)]
        kill(process, way, generator)
        killed += 1
        torn = _differing(whole.results, results(checkout), whole=False)
        if torn:
            return killed, f"under final names right after kill {killed}, {way}: {torn}"
    fault = _ended(checkout, stage, whole)
    if not fault:
        shutil.rmtree(folder, ignore_errors=True)
    return killed, fault


def _ended(checkout: Checkout, stage: Stage, whole: Undisturbed) -> str | None:
    """Let a run come to its end; return in what it is not the undisturbed one."""
    end = time.monotonic() + MOST_SECONDS
    while (done := checkout.snakemake(stage.target)).code != 0:
        if time.monotonic() > end:
            return (
                f"the same command fails: {' '.join(done.errors) or done.said[-300:]}"
            )
        time.sleep(SECONDS_TO_WAIT)
    differing = _differing(whole.results, results(checkout), whole=True)
    return f"other results: {differing}" if differing else None


def _differing(
    expected: dict[str, str], found: dict[str, str], *, whole: bool
) -> list[str]:
    """Return the names of the files that are not as expected; of a part only those that are there.

    Intermediate files, which go when nothing needs them, are in one of the two alone.
    """
    absent = [name for name in expected if name not in found] if whole else []
    return absent + [
        name for name in found if name in expected and found[name] != expected[name]
    ]


def run(kills: int, number: int, stages: Sequence[Stage] = STAGES) -> Counter[str]:
    """Kill so many runs in all, as many in each stage; print a line for each fault."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="convs2s-kills-") as name:
        folder = Path(name)
        plain, mirrored = _checkouts(folder)
        for stage in STAGES:
            checkout = mirrored if stage.at_mirror else plain
            if stage in stages:
                whole = undisturbed(checkout, stage, folder / f"before {stage.name}")
                counts += _kill_all(
                    whole, stage, -(-kills // len(stages)), number, folder
                )
            else:
                checkout.snakemake(stage.target).succeeded()
    return counts


def _checkouts(folder: Path) -> tuple[Checkout, Checkout]:
    (folder / "plain").mkdir()
    (folder / "mirrored").mkdir()
    plain, mirrored = (check_out(ROOT, folder / name) for name in ("plain", "mirrored"))
    plain.configure(OPTIONS)
    write_mirror(folder / "mirror")
    add_mirror(folder / "mirror", mirrored).configure(DEVICE)
    return plain, mirrored


def _kill_all(
    whole: Undisturbed, stage: Stage, kills: int, number: int, folder: Path
) -> Counter[str]:
    counts: Counter[str] = Counter()
    while counts[stage.name] < kills:
        most = min(IN_A_ROW, kills - counts[stage.name])
        place = folder / f"{stage.name}{number}"
        killed, fault = disturbed(whole, stage, most, number, place)
        counts[stage.name] += killed
        counts["faults"] += fault is not None
        if fault:
            kept = shutil.move(place, tempfile.mkdtemp(prefix="convs2s-kill-kept-"))
            print(f"  {stage.name}, {number}: {fault} (kept: {kept})", flush=True)
        number += 1
    print(f"{stage.name:10} {kills} kills, {counts['faults']} faults", flush=True)
    return counts


def main() -> None:
    """Kill runs; exit with 1 where one of them did not end as it should."""
    parser = argparse.ArgumentParser(description="Kills in every stage of a small run.")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"in all [{KILLS}]")
    parser.add_argument("--seed", type=int, default=1, help="of the moments [1]")
    parser.add_argument(
        "--stage", choices=[one.name for one in STAGES], help="one alone [all]"
    )
    arguments = parser.parse_args()
    chosen = [one for one in STAGES if arguments.stage in (None, one.name)]
    counts = run(arguments.kills, arguments.seed, chosen)
    faults = counts.pop("faults", 0)
    print(f"kills: {sum(counts.values())} in {len(counts)} stages, {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
