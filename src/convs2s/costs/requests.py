"""A report on a run's requests to a cluster: a line for each kind, and warnings."""

import argparse
import importlib.util
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from convs2s.costs.dry_run import (
    ALL_CORES,
    DryRun,
    Request,
    dry_run,
    local_rules,
    parse_plan,
)
from convs2s.costs.partitions import ask_sinfo, refusals
from convs2s.scoring.text_table import aligned, underlined

LOCAL_EXECUTORS = {"local", "dryrun", "touch"}

# The resources in the last column of the table, besides threads, mem_mb, runtime and gpu, which
# have their own columns.
_FURTHER = (
    "gres",
    "gpu_model",
    "nodes",
    "tasks",
    "tasks_per_node",
    "cpus_per_task",
    "mem_mb_per_cpu",
    "slurm_partition",
    "slurm_account",
    "qos",
    "constraint",
    "clusters",
    "slurm_extra",
)
# The name of the file in a profile's folder, such as config.yaml. A name such as config.v8+.yaml
# states the lowest version of Snakemake that can read the file.
_PROFILE = re.compile(r"(?:profile|config)(?:\.v(\d+)\+)?\.yaml")


@dataclass(frozen=True)
class Submission:
    """The options of a command line and its profiles that decide how jobs are submitted."""

    executor: str
    """The name of Snakemake's executor plugin."""
    limits_cores: bool
    """Whether a number of cores is stated, which limits the threads of all jobs."""
    chooses_partition: bool
    """Whether Slurm's plugin chooses the partition of a job that names none."""
    translations: int | None
    """The number of translations that a group runs at a time; None if there is no limit.

    It is a resource of the rules (``resource_scopes`` in rules/common.smk).
    """
    folder: Path
    """The folder in which the command line was given."""

    @property
    def is_local(self) -> bool:
        """Whether jobs run on this machine."""
        return self.executor in LOCAL_EXECUTORS


def requests_report(
    command: Sequence[str],
    submission: Submission,
    *,
    targets: Sequence[str],
    prefix: str,
    snakefiles: Iterable[Path],
) -> Iterator[str]:
    """Plan a run and yield the lines of a report on its requests to a cluster.

    Yield nothing if jobs run on this machine, or if the command line does not contain the target
    ``preflight``, which asks for this report.

    Args:
        command: the command line of this process: Python, ``-m snakemake`` and its arguments.
        submission: the options of that command line for submission.
        targets: the targets of the run to plan. They replace the target ``preflight``.
        prefix: the prefix of the names of all rules, and so of the targets, if another workflow
            uses this one as a module (``use rule``); otherwise empty.
        snakefiles: the files of the rules.
    """
    asked = f"{prefix}preflight"
    # If another program calls Snakemake's API, this is the command line of that program, without
    # the target.
    if submission.is_local or asked not in command:
        return
    yield ""
    yield from underlined(
        f"requests to the cluster, by its executor {submission.executor}"
    )
    targets = [prefix + target for target in targets]
    yield f"planning {', '.join(targets)}, without running anything"
    done = subprocess.run(
        dry_run(command, asked, targets, limits_cores=submission.limits_cores),
        cwd=submission.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        output = f"{done.stdout}\n{done.stderr}".strip()
        last_line = output.rpartition("\n")[2]
        yield f"WARNING: the requests are not known, because planning failed: {last_line}"
        return
    local = local_rules(path.read_text("utf-8") for path in snakefiles)
    plan = parse_plan(
        done.stdout, {prefix + name for name in local}, submission.translations
    )
    yield from table(plan)
    yield from warnings(plan, submission)


def submission_of(words: Sequence[str], started_in: Path) -> Submission:
    """Read the options for submission from the words of a command line and from its profiles.

    Args:
        words: the words of the command line.
        started_in: the folder in which the command line was given. Snakemake may have changed to
            the folder of its option ``--directory`` since then.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default=os.environ.get("SNAKEMAKE_PROFILE"))
    parser.add_argument("--workflow-profile", default="profiles/default")
    parser.add_argument("--executor", "-e", default="local")
    parser.add_argument("--cores", "-c", nargs="?", const="all")
    parser.add_argument("--resources", "--res", nargs="+")
    parser.add_argument("--directory", "-d", default="")
    partitions = os.environ.get("SNAKEMAKE_SLURM_PARTITIONS")
    parser.add_argument("--slurm-partition-config", default=partitions)
    # The words are parsed twice: here to find the profiles, and below with the defaults that the
    # profiles state.
    options, _ = parser.parse_known_args(words)
    # Paths on the command line are relative to the folder in which it was given. If --directory
    # leads from `started_in` to the current folder, Snakemake has changed the folder.
    folder = Path.cwd()
    if (started_in / options.directory).resolve() == folder:
        folder = started_in
    user_config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    profile_folders = [
        folder,
        Path(user_config, "snakemake"),
        Path("/etc/xdg/snakemake"),
    ]
    # The options in a profile are defaults for those of the command line. The workflow's profile
    # comes last, because it overrides the other profile.
    for profile in (options.profile, options.workflow_profile):
        if profile:
            parser.set_defaults(**_profile(profile, profile_folders))
    options, _ = parser.parse_known_args(words)
    # On a command line, limits are words NAME=NUMBER. A profile may instead contain a mapping, or
    # one text with such words.
    limits = options.resources or {}
    if isinstance(limits, str):
        limits = limits.split()
    if isinstance(limits, list):
        limits = dict(word.split("=", 1) for word in limits)
    return Submission(
        executor=options.executor,
        limits_cores=options.cores is not None,
        chooses_partition=options.slurm_partition_config is not None,
        translations=int(limits["translations"]) if "translations" in limits else None,
        folder=folder,
    )


def _profile(name: str, folders: Iterable[Path]) -> dict[str, object]:
    """Read a profile of Snakemake, and return option -> value.

    A profile is a file, or a folder that contains it. It is searched for in ``folders``, in their
    order. If none has it, return an empty mapping.
    """
    for folder in folders:
        path = folder / name
        if path.is_dir():
            versions = {}  # file -> the lowest version in its name; 0 if there is none
            for file in path.glob("*.yaml"):
                if found := _PROFILE.fullmatch(file.name):
                    versions[file] = int(found[1] or 0)
            # Of several files, take the one for the newest version of Snakemake.
            path = max(versions, key=versions.__getitem__, default=path)
        if path.is_file():
            options = yaml.safe_load(path.read_text("utf-8")) or {}
            return {
                option.replace("-", "_"): value for option, value in options.items()
            }
    return {}


def table(plan: DryRun) -> Iterator[str]:
    """Yield the lines of a table with a row for each kind of request, and the totals below it."""
    header = ["", "submissions", "threads", "mem_mb", "runtime", "GPUs", "further"]
    rows = []
    for largest, kind in _kinds(plan.requests):
        row = [largest.name, f"{len(kind):,}"]
        threads = _range(request.resources.get("threads") for request in kind)
        # The dry run plans with this number of cores. A job with as many threads takes all cores.
        row.append(threads.replace(f"{ALL_CORES:,}", "all"))
        for resource in ("mem_mb", "runtime"):
            row.append(_range(request.resources.get(resource) for request in kind))
        gpus = _range(str(request.gpus) for request in kind)
        row += ["" if gpus == "0" else gpus, _further(largest)]
        rows.append(row)
    if rows:
        yield from aligned(header, rows)
    if any("?" in cell for row in rows for cell in row):
        yield "?: not known before the input of the job exists"
    yield f"submissions: {len(plan.requests):,}; jobs that run here: {plan.local:,}"
    if plan.not_shown:
        yield f"not counted: {plan.not_shown:,} jobs of rules with a message of their own"


def warnings(plan: DryRun, submission: Submission) -> Iterator[str]:
    """Yield a warning on each kind of request that can never run, with the option to set.

    This is checked only for Slurm. Also yield a warning if jobs ask for GPUs, but the installed
    torch has no support for GPUs.
    """
    if any(request.gpus for request in plan.requests) and not torch_has_gpus():
        yield (
            "WARNING: jobs ask for GPUs, but torch here was built without support for GPUs: remove "
            ".venv and run make install TORCH=cuda"
        )
    if submission.executor != "slurm" or not plan.requests:
        return
    cluster = ask_sinfo()
    if cluster is None:
        yield "requests are not checked: sinfo is not here, or does not answer"
        return
    for request, _ in _kinds(plan.requests):
        for reason in refusals(
            request, cluster, chooses_partition=submission.chooses_partition
        ):
            yield f"WARNING: {request.name}: asks for {reason}"


def torch_has_gpus() -> bool:
    """Return whether torch is installed with support for GPUs.

    This reads torch's file ``version.py``, because importing torch would take seconds.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    text = Path(spec.origin).with_name("version.py").read_text("utf-8")
    return re.search(r"^(?:cuda|hip)\b[^=\n]*= *['\"]", text, re.MULTILINE) is not None


def _kinds(requests: Iterable[Request]) -> list[tuple[Request, list[Request]]]:
    """Return the kinds of requests, the largest first.

    Requests of one kind have the same name and the same further resources. Each kind is a pair. Its
    first item is a request made up of the largest numbers in the kind. The second item has all
    requests of the kind.
    """
    kinds = defaultdict(list)
    for request in requests:
        kinds[request.name, _further(request)].append(request)
    found = []
    for kind in kinds.values():
        resources = dict(kind[0].resources)
        for name in ("threads", "mem_mb", "runtime", "gpu"):
            largest = max(request.number(name) or 0 for request in kind)
            if largest:
                resources[name] = str(largest)
        found.append((replace(kind[0], resources=resources), kind))
    return sorted(found, key=lambda kind: _size(kind[0]), reverse=True)


def _size(request: Request) -> list[int]:
    """Return the key by which requests are sorted: GPUs, then minutes, then memory."""
    return [request.gpus, request.number("runtime") or 0, request.number("mem_mb") or 0]


def _further(request: Request) -> str:
    """Format the further resources of a request. ``nodes=1`` is left out, as it is the default."""
    stated = []
    for name in _FURTHER:
        value = request.resources.get(name)
        if value and (name, value) != ("nodes", "1"):
            stated.append(f"{name}={value}")
    return " ".join(stated)


def _range(values: Iterable[str | None]) -> str:
    """Format the smallest and the largest number; add a question mark if any is not known."""
    stated = {value for value in values if value is not None}
    numbers = sorted(int(value) for value in stated if value.isdecimal())
    parts = [f"{number:,}" for number in numbers]
    if len(parts) > 2:
        parts = [parts[0], parts[-1]]
    if len(numbers) < len(stated):
        parts.append("?")
    return "-".join(parts)
