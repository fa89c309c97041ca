"""What a Slurm cluster has, as ``sinfo`` prints it, and the requests that it can never grant."""

import math
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from convs2s.costs.dry_run import ALL_CORES, Request, gpus_in

_SINFO = ("sinfo", "--noheader", "--all", "--exact", "--format=%P|%l|%c|%m|%D|%G")
_SINFO_SECONDS = 20
# Its columns; a plus sign says that nodes differ, and that this is the least of them.
_NODES = re.compile(r"^ *(.*)\|(.*)\|(\d+)\+?\|(\d+)\+?\|(\d+)\|(.*?) *$", re.MULTILINE)
_IN_EXTRA = re.compile(r"(?:--partition[= ]|-p ?)([\w,.-]+)")


@dataclass
class Partition:
    """A partition of Slurm."""

    name: str
    minutes: float
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
    for name, time, cpus, memory, count, gres in _NODES.findall(text):
        own_name = name.removesuffix("*")
        of_name = Partition(own_name, minutes(time), is_default=name != own_name)
        nodes = Nodes(int(count), int(cpus), int(memory), gpus_in(gres))
        partitions.setdefault(own_name, of_name).nodes.append(nodes)
    return list(partitions.values())


def minutes(time: str) -> float:
    """Return the minutes of Slurm's DAYS-HOURS:MINUTES:SECONDS; infinity where it has no limit."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):\d+", time)
    if found is None:
        return math.inf
    days, hours, of_hour = (int(part or 0) for part in found.groups())
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
    wanted = stated.split(",")
    if not stated:
        wanted = [one.name for one in partitions if chooses_partition or one.is_default]
    misfits = {partition.name: _misfits(request, partition) for partition in partitions}
    allowed = [of_one for name, of_one in misfits.items() if name in wanted]
    if not allowed:
        why = "no partition, and none is the default"
        if stated:
            why = f"partition {stated}, which is not here"
        to_set = f"set slurm_partition in the profile, to one of {', '.join(misfits)}"
        return [Refusal(None, why, to_set)]
    least = min(allowed, key=len)
    for name, of_one in misfits.items():
        if not of_one:
            other = f"--set-resources RULE:slurm_partition={name}"
            return [replace(one, to_set=f"{one.to_set}, or {other}") for one in least]
    return least


def _misfits(request: Request, partition: Partition) -> list[Refusal]:
    """Return what of a request a partition can never grant."""
    model, gpus = _gpus_per_node(request)
    most_gpus = max((nodes.gpus_of(model) for nodes in partition.nodes), default=0)
    fewer_gpus = f"--config gpus={most_gpus}"
    if not most_gpus:
        fewer_gpus = "--config device=cpu"
    elif "gres" in request.resources:
        gres = f"gpu:{model}:{most_gpus}" if model else f"gpu:{most_gpus}"
        fewer_gpus = f"--set-resources RULE:gres={gres}"
    # Only the nodes with the GPUs that it asks for, or the most that there are, may run it.
    having = [nodes for nodes in partition.nodes if nodes.gpus_of(model) >= min(gpus, most_gpus)]
    cpus = max((nodes.cpus for nodes in having), default=0)
    memory = max((nodes.memory for nodes in having), default=0)
    count = sum(nodes.count for nodes in having)
    asked_cpus = _cpus_per_node(request)
    asked_memory = request.number("mem_mb") or 0
    if of_a_cpu := request.number("mem_mb_per_cpu"):  # a site may state it so
        asked_memory = of_a_cpu * asked_cpus
    resource = "--set-resources RULE"
    compared = [
        (
            request.number("runtime") or 0,
            "minutes",
            partition.minutes,
            f"{resource}:runtime={partition.minutes}",
        ),
        (gpus, f"{model} GPUs on a node".lstrip(), most_gpus, fewer_gpus),
        (asked_cpus, "CPUs on a node", cpus, f"--set-threads RULE={cpus}"),
        (asked_memory, "MB of memory on a node", memory, f"{resource}:mem_mb={memory}"),
        (request.nodes, "such nodes", count, f"{resource}:nodes={count}"),
    ]
    found = []
    for asked, unit, most, to_set in compared:
        if asked > most:
            why = f"{unit}, partition {partition.name} gives at most {most:,}"
            found.append(Refusal(asked, why, to_set))
    return found


def _gpus_per_node(request: Request) -> tuple[str, int]:
    """Return the model of the GPUs that a request asks for on each node, and their number."""
    for model, count in gpus_in(request.resources.get("gres", "")).items():
        return model, count
    gpus = math.ceil((request.number("gpu") or 0) / request.nodes)
    return request.resources.get("gpu_model", ""), gpus


def _cpus_per_node(request: Request) -> int:
    """Return the CPUs that a request asks for on each node; 0 where it takes what there is.

    A site's profile may state ``cpus_per_task`` and ``tasks_per_node`` itself.
    """
    cpus = request.number("cpus_per_task")
    if cpus is None:
        cpus = request.number("threads") or 1
    if not 0 <= cpus < ALL_CORES:
        return 0
    tasks = math.ceil((request.number("tasks") or 1) / request.nodes)
    return cpus * (request.number("tasks_per_node") or tasks)
