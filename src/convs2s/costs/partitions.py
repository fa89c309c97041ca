"""The partitions of a Slurm cluster, read from ``sinfo``, and the requests that none can grant."""

import math
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from convs2s.costs.dry_run import ALL_CORES, Request, gpus_in

_SINFO = ("sinfo", "--noheader", "--all", "--exact", "--format=%P|%l|%c|%m|%D|%G")
_SINFO_SECONDS = 20
# The columns that _SINFO asks for. A plus sign means that nodes differ, and that the number is the
# smallest of them.
_NODES = re.compile(r"^ *(.*)\|(.*)\|(\d+)\+?\|(\d+)\+?\|(\d+)\|(.*?) *$", re.MULTILINE)
# The option that names partitions, in the text of further options for sbatch.
_IN_EXTRA = re.compile(r"(?:--partition[= ]|-p ?)([\w,.-]+)")


@dataclass
class Partition:
    """A partition of Slurm."""

    name: str
    minutes: float  # the time limit of a job; infinity if there is none
    is_default: bool  # whether jobs that name no partition run in this one
    nodes: list["Nodes"] = field(default_factory=list)


@dataclass(frozen=True)
class Nodes:
    """A set of equal nodes of a partition."""

    count: int  # the number of nodes
    cpus: int  # of each node
    memory: int  # of each node, in MB
    gpus: Mapping[str, int]  # model -> its number on each node

    def gpus_of(self, model: str) -> int:
        """Return the number of a model's GPUs on each node; for an empty name, of all its GPUs."""
        return self.gpus.get(model, 0) if model else sum(self.gpus.values())


@dataclass(frozen=True)
class Refusal:
    """The reason why a request can never run, and the options that would allow it."""

    asked: int | None
    """The number that is requested, in the unit that ``why`` begins with; None for other reasons"""
    why: str
    """The reason, to be printed after ``asked``."""
    to_set: str
    """The options to set, with the word RULE in place of the rule's name."""


def ask_sinfo() -> list[Partition] | None:
    """Return the partitions of the cluster; None if ``sinfo`` is missing, fails or hangs."""
    try:
        done = subprocess.run(
            _SINFO, capture_output=True, text=True, check=True, timeout=_SINFO_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_sinfo(done.stdout)


def parse_sinfo(text: str) -> list[Partition]:
    """Parse the output of ``sinfo``, which has a line for each kind of nodes of a partition.

    Lines of another form are ignored.
    """
    partitions: dict[str, Partition] = {}
    for printed_name, time, cpus, memory, count, gres in _NODES.findall(text):
        # The asterisk marks the default partition.
        name = printed_name.removesuffix("*")
        if name not in partitions:
            is_default = name != printed_name
            partitions[name] = Partition(name, minutes(time), is_default=is_default)
        nodes = Nodes(int(count), int(cpus), int(memory), gpus_in(gres))
        partitions[name].nodes.append(nodes)
    return list(partitions.values())


def minutes(time: str) -> float:
    """Return the minutes of a time that Slurm prints as DAYS-HOURS:MINUTES:SECONDS.

    Days and hours may be missing. Any other text, such as ``infinite``, means no limit: return
    infinity.
    """
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):\d+", time)
    if found is None:
        return math.inf
    days, hours, minutes_of_hour = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes_of_hour


def refusals(
    request: Request,
    partitions: Sequence[Partition],
    *,
    chooses_partition: bool = False,
) -> list[Refusal]:
    """Return the reasons why a request can never run on a cluster; an empty list if it can.

    A request runs in the partitions that it names, else in the default partition. If several are
    possible, return the reasons of the one with the fewest. If another partition could run the
    request, each refusal suggests that one too.

    Args:
        request: the request to check.
        partitions: all partitions of the cluster.
        chooses_partition: whether Slurm's plugin for Snakemake chooses among all partitions for a
            request that names none.
    """
    if "clusters" in request.resources:
        return []  # sinfo only knows the partitions of this cluster
    in_extra = _IN_EXTRA.search(request.resources.get("slurm_extra", ""))
    named = in_extra[1] if in_extra else request.resources.get("slurm_partition", "")
    possible = named.split(",")
    if not named:
        possible = [
            partition.name
            for partition in partitions
            if chooses_partition or partition.is_default
        ]
    misfits = {partition.name: _misfits(request, partition) for partition in partitions}
    misfits_of_possible = [found for name, found in misfits.items() if name in possible]
    if not misfits_of_possible:
        why = "no partition, and none is the default"
        if named:
            why = f"partition {named}, which is not here"
        to_set = f"set slurm_partition in the profile, to one of {', '.join(misfits)}"
        return [Refusal(None, why, to_set)]
    fewest = min(misfits_of_possible, key=len)
    for name, found in misfits.items():
        if not found:
            other = f"--set-resources RULE:slurm_partition={name}"
            return [
                replace(refusal, to_set=f"{refusal.to_set}, or {other}")
                for refusal in fewest
            ]
    return fewest


def _misfits(request: Request, partition: Partition) -> list[Refusal]:
    """Return the reasons why a partition can never grant a request; an empty list if it can."""
    model, gpus = _gpus_per_node(request)
    most_gpus = max((nodes.gpus_of(model) for nodes in partition.nodes), default=0)
    fewer_gpus = f"--config gpus={most_gpus}"
    if not most_gpus:
        fewer_gpus = "--config device=cpu"
    elif "gres" in request.resources:
        gres = f"gpu:{model}:{most_gpus}" if model else f"gpu:{most_gpus}"
        fewer_gpus = f"--set-resources RULE:gres={gres}"
    # Only nodes with as many GPUs as requested can run the request. If none has so many, compare
    # with the nodes that have the most, because the user can ask for fewer GPUs.
    with_gpus = [
        nodes
        for nodes in partition.nodes
        if nodes.gpus_of(model) >= min(gpus, most_gpus)
    ]
    cpus = max((nodes.cpus for nodes in with_gpus), default=0)
    memory = max((nodes.memory for nodes in with_gpus), default=0)
    count = sum(nodes.count for nodes in with_gpus)
    asked_cpus = _cpus_per_node(request)
    asked_memory = request.number("mem_mb") or 0
    # A site's profile may state this instead.
    memory_per_cpu = request.number("mem_mb_per_cpu")
    if memory_per_cpu:
        asked_memory = memory_per_cpu * asked_cpus
    resource = "--set-resources RULE"
    # What is requested, its unit, what the partition has, and the option that lowers the request.
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
    """Return the model and the number of the GPUs that a request asks for on each node.

    If ``gres`` names several models, only the first counts. The model is empty if any will do.
    """
    gpus_by_model = gpus_in(request.resources.get("gres", ""))
    if gpus_by_model:
        return next(iter(gpus_by_model.items()))
    gpus = math.ceil((request.number("gpu") or 0) / request.nodes)
    return request.resources.get("gpu_model", ""), gpus


def _cpus_per_node(request: Request) -> int:
    """Return the CPUs that a request asks for on each node; 0 if it takes all cores.

    ``cpus_per_task`` and ``tasks_per_node``, which a site's profile may state, override the numbers
    of threads and of tasks.
    """
    cpus = request.number("cpus_per_task")
    if cpus is None:
        cpus = request.number("threads") or 1
    if not 0 <= cpus < ALL_CORES:
        return 0
    tasks = math.ceil((request.number("tasks") or 1) / request.nodes)
    return cpus * (request.number("tasks_per_node") or tasks)
