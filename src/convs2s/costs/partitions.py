"""What a Slurm cluster has, as ``sinfo`` prints it, and the requests that it can never grant."""

import math
import re
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
    try:
        done = subprocess.run(
            _SINFO, capture_output=True, text=True, check=True, timeout=_SINFO_SECONDS
        )
    except (OSError, subprocess.SubprocessError):  # also where there is no sinfo
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
        if own_name not in partitions:
            partitions[own_name] = Partition(own_name, minutes(time), name.endswith("*"))
        # A plus sign says that nodes differ, and that this is the least of them.
        nodes = Nodes(
            count=int(count),
            cpus=int(cpus.removesuffix("+")),
            memory=int(memory.removesuffix("+")),
            gpus=gpus_in(gres),
        )
        partitions[own_name].nodes.append(nodes)
    return list(partitions.values())


def minutes(time: str) -> int | None:
    """Return the minutes of Slurm's DAYS-HOURS:MINUTES:SECONDS; None where there is no limit."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", time)
    if found is None:
        return None
    days, hours, of_hour, _ = found.groups()
    return (int(days or 0) * 24 + int(hours or 0)) * 60 + int(of_hour)


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
    allowed = []
    suitable = []
    for partition in partitions:
        misfits = _misfits(request, partition)
        if not misfits:
            suitable.append(partition.name)
        if stated:
            is_allowed = partition.name in stated.split(",")
        else:
            is_allowed = chooses_partition or partition.is_default
        if is_allowed:
            allowed.append(misfits)
    if not allowed:
        why = "no partition, and none is the default"
        if stated:
            why = f"partition {stated}, which is not here"
        names = ", ".join(partition.name for partition in partitions)
        to_set = f"set slurm_partition in the profile, to one of {names}"
        return [Refusal(None, why, to_set)]
    least = min(allowed, key=len)
    if not suitable:
        return least
    other = f"--set-resources RULE:slurm_partition={suitable[0]}"
    return [replace(refusal, to_set=f"{refusal.to_set}, or {other}") for refusal in least]


def _misfits(request: Request, partition: Partition) -> list[Refusal]:
    """Return what of a request a partition can never grant."""
    found = []

    def compare(asked: int, unit: str, most: int, to_set: str) -> None:
        """Note a number that is larger than what the partition has at most."""
        if asked > most:
            why = f"{unit}, partition {partition.name} gives at most {most:,}"
            found.append(Refusal(asked, why, to_set))

    limit = partition.minutes
    if limit is not None:
        asked = request.number("runtime") or 0
        compare(asked, "minutes", limit, f"--set-resources RULE:runtime={limit}")
    model, gpus = _gpus_per_node(request)
    most_gpus = max((nodes.gpus_of(model) for nodes in partition.nodes), default=0)
    to_set = f"--config gpus={most_gpus}"
    if not most_gpus:
        to_set = "--config device=cpu"
    elif "gres" in request.resources:
        gres = f"gpu:{model}:{most_gpus}" if model else f"gpu:{most_gpus}"
        to_set = f"--set-resources RULE:gres={gres}"
    compare(gpus, f"{model} GPUs on a node".lstrip(), most_gpus, to_set)
    # Only the nodes with the GPUs that it asks for, or the most that there are, may run it.
    having = [nodes for nodes in partition.nodes if nodes.gpus_of(model) >= min(gpus, most_gpus)]
    cpus = max((nodes.cpus for nodes in having), default=0)
    compare(_cpus_per_node(request), "CPUs on a node", cpus, f"--set-threads RULE={cpus}")
    memory = max((nodes.memory for nodes in having), default=0)
    to_set = f"--set-resources RULE:mem_mb={memory}"
    compare(_memory_per_node(request), "MB of memory on a node", memory, to_set)
    count = sum(nodes.count for nodes in having)
    compare(_nodes(request), "such nodes", count, f"--set-resources RULE:nodes={count}")
    return found


def _nodes(request: Request) -> int:
    """Return on how many nodes a request runs; without a number it is one, for a rule's job."""
    return request.number("nodes") or 1


def _gpus_per_node(request: Request) -> tuple[str, int]:
    """Return the model of the GPUs that a request asks for on each node, and their number."""
    in_gres = gpus_in(request.resources.get("gres", ""))
    if in_gres:
        return next(iter(in_gres.items()))
    gpus = math.ceil((request.number("gpu") or 0) / _nodes(request))
    return request.resources.get("gpu_model", ""), gpus


def _cpus_per_node(request: Request) -> int:
    """Return the CPUs that a request asks for on each node; 0 where it takes what there is.

    A site's profile may state ``cpus_per_task`` and ``tasks_per_node`` itself.
    """
    cpus = request.number("cpus_per_task")
    if cpus is None:
        cpus = request.number("threads") or 1
    if cpus >= ALL_CORES or cpus < 0:
        return 0
    tasks = math.ceil((request.number("tasks") or 1) / _nodes(request))
    return cpus * (request.number("tasks_per_node") or tasks)


def _memory_per_node(request: Request) -> int:
    """Return the megabytes that a request asks for on each node; a site may state them by CPU."""
    of_a_cpu = request.number("mem_mb_per_cpu")
    if of_a_cpu:
        return of_a_cpu * _cpus_per_node(request)
    return request.number("mem_mb") or 0
