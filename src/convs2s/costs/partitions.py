"""What a Slurm cluster has, as ``sinfo`` prints it, and the requests that it can never grant."""

import math
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from convs2s.costs.dry_run import ALL_CORES, Request, gpus_in

_SINFO = ("sinfo", "--noheader", "--all", "--exact", "--format=%P|%l|%c|%m|%D|%G")
_SINFO_SECONDS = 20
_IN_EXTRA = re.compile(r"(?:--partition[= ]|-p ?)([\w,.-]+)")


@dataclass
class Partition:
    """A partition of Slurm; ``minutes`` is None where time has no limit."""

    name: str
    minutes: int | None
    is_default: bool
    nodes: list["Nodes"] = field(default_factory=list)


@dataclass(frozen=True)
class Nodes:
    """Some equal nodes of a partition: what each has; memory in MB, GPUs by model."""

    count: int
    cpus: int
    memory: int
    gpus: Mapping[str, int]

    def gpus_of(self, model: str) -> int:
        """Return the GPUs of a model, or all of a node for an empty name."""
        return self.gpus.get(model, 0) if model else sum(self.gpus.values())


@dataclass(frozen=True)
class Refusal:
    """Why a request can never run, and the options that would let it, with RULE for its rule."""

    asked: int | None
    """How many of what ``why`` begins with; None where it is no number."""
    why: str
    to_set: str


def ask_sinfo() -> list[Partition] | None:
    """Return the partitions of the cluster; None where nobody says which there are."""
    if shutil.which(_SINFO[0]) is None:
        return None
    try:
        done = subprocess.run(
            _SINFO, capture_output=True, text=True, check=True, timeout=_SINFO_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_sinfo(done.stdout)


def parse_sinfo(text: str) -> list[Partition]:
    """Return the partitions that sinfo prints, a line for each of their kinds of nodes."""
    partitions: dict[str, Partition] = {}
    for line in text.splitlines():
        columns = line.strip().split("|")
        if len(columns) != 6:
            continue
        name, time, cpus, memory, count, gres = columns
        own_name = name.removesuffix("*")
        partition = partitions.setdefault(
            own_name, Partition(own_name, minutes(time), name.endswith("*"))
        )
        # A plus sign says that nodes differ, and that this is the least of them.
        of_each = {"count": count, "cpus": cpus, "memory": memory}
        numbers = {what: int(number.removesuffix("+")) for what, number in of_each.items()}
        partition.nodes.append(Nodes(**numbers, gpus=gpus_in(gres)))
    return list(partitions.values())


def minutes(time: str) -> int | None:
    """Return the minutes of Slurm's DAYS-HOURS:MINUTES:SECONDS; None where there is no limit."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", time)
    if found is None:
        return None
    days, hours, of_hour, _ = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + of_hour


def refusals(
    request: Request, partitions: Sequence[Partition], chooses_partition: bool = False
) -> list[Refusal]:
    """Return why a request can never run on a cluster; nothing where it can.

    ``chooses_partition``: whether any partition may run what names none.
    """
    if "clusters" in request.resources:  # sinfo has told of one
        return []
    in_extra = _IN_EXTRA.search(request.resources.get("slurm_extra", ""))
    stated = in_extra[1] if in_extra else request.resources.get("slurm_partition", "")
    asked = [name for name in stated.split(",") if name]
    in_all = {partition.name: _misfits(request, partition) for partition in partitions}
    allowed = [
        in_all[partition.name]
        for partition in partitions
        if partition.name in asked or (not asked and (chooses_partition or partition.is_default))
    ]
    suitable = [name for name, misfits in in_all.items() if not misfits]
    if not allowed:
        missing = f"partition {stated}, which is not here" if asked else "no partition"
        none = "" if asked else ", and none is the default"
        to_set = f"set slurm_partition in the profile, to one of {', '.join(in_all)}"
        return [Refusal(None, missing + none, to_set)]
    least = min(allowed, key=len)
    if not suitable:
        return least
    other = f"--set-resources RULE:slurm_partition={suitable[0]}"
    return [replace(refusal, to_set=f"{refusal.to_set}, or {other}") for refusal in least]


def _misfits(request: Request, partition: Partition) -> list[Refusal]:
    """Return what of a request a partition can never grant."""

    def refusal(asked: int, unit: str, most: int, to_set: str) -> Refusal:
        why = f"{unit}, partition {partition.name} gives at most {most:,}"
        return Refusal(asked, why, to_set)

    found = []
    time, limit = request.number("runtime"), partition.minutes
    if time is not None and limit is not None and time > limit:
        found.append(refusal(time, "minutes", limit, f"--set-resources RULE:runtime={limit}"))
    model, gpus = _gpus_per_node(request)
    most = max((nodes.gpus_of(model) for nodes in partition.nodes), default=0)
    if gpus > most:
        unit = f"{model} GPUs on a node".lstrip()
        to_set = f"--config gpus={most}" if most else "--config device=cpu"
        if "gres" in request.resources and most:
            of_model = f"{model}:" if model else ""
            to_set = f"--set-resources RULE:gres=gpu:{of_model}{most}"
        found.append(refusal(gpus, unit, most, to_set))
    having = [nodes for nodes in partition.nodes if nodes.gpus_of(model) >= min(gpus, most)]
    cpus, most = _cpus_per_node(request), max((nodes.cpus for nodes in having), default=0)
    if cpus > most:
        found.append(refusal(cpus, "CPUs on a node", most, f"--set-threads RULE={most}"))
    memory, most = _memory_per_node(request), max((nodes.memory for nodes in having), default=0)
    if memory > most:
        to_set = f"--set-resources RULE:mem_mb={most}"
        found.append(refusal(memory, "MB of memory on a node", most, to_set))
    nodes, most = request.number("nodes") or 1, sum(nodes.count for nodes in having)
    if nodes > most:
        found.append(refusal(nodes, "such nodes", most, f"--set-resources RULE:nodes={most}"))
    return found


def _gpus_per_node(request: Request) -> tuple[str, int]:
    """Return the model of the GPUs that a request asks for on each node, and their number.

    Without a number of nodes it is one: a job of a rule runs on one node alone.
    """
    if in_gres := gpus_in(request.resources.get("gres", "")):
        return next(iter(in_gres.items()))
    gpus = request.number("gpu") or 0
    return request.resources.get("gpu_model", ""), -(-gpus // (request.number("nodes") or 1))


def _cpus_per_node(request: Request) -> int:
    """Return the CPUs that a request asks for on each node; 0 where it takes what there is."""
    of_task = request.number("cpus_per_task")
    cpus = request.number("threads") or 1 if of_task is None else of_task
    if cpus >= ALL_CORES or cpus < 0:
        return 0
    tasks = math.ceil((request.number("tasks") or 1) / (request.number("nodes") or 1))
    return cpus * (request.number("tasks_per_node") or tasks)


def _memory_per_node(request: Request) -> int:
    per_cpu = request.number("mem_mb_per_cpu")
    return per_cpu * _cpus_per_node(request) if per_cpu else request.number("mem_mb") or 0
