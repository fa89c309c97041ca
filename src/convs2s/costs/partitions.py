"""The partitions of a Slurm cluster, read from ``sinfo``, and why a request can never run there."""

import math
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from convs2s.costs.dry_run import ALL_CORES, Request, gpus_in

_SINFO = ("sinfo", "--noheader", "--all", "--exact", "--format=%P|%l|%c|%m|%D|%G")
_SINFO_SECONDS = 20
# The columns that _SINFO asks for. If a number differs between nodes, sinfo prints the smallest one
# with a plus sign.
_NODES = re.compile(r"^ *(.*)\|(.*)\|(\d+)\+?\|(\d+)\+?\|(\d+)\|(.*?) *$", re.MULTILINE)
# The option that names partitions, in the text of further options for sbatch.
_IN_EXTRA = re.compile(r"(?:--partition[= ]|-p ?)([\w,.-]+)")


@dataclass(frozen=True)
class Nodes:
    """A set of equal nodes of a partition."""

    minutes: float  # the time limit of a job; infinity if there is none
    cpus: int  # on each node
    memory: int  # on each node, in MB
    count: int  # the number of nodes
    gpus: Mapping[str, int]  # model -> number of its GPUs on each node

    def gpus_of(self, model: str) -> int:
        """Return the number of GPUs of a model on each node; of all models if the name is empty."""
        return self.gpus.get(model, 0) if model else sum(self.gpus.values())


@dataclass
class Cluster:
    """The partitions of a cluster of Slurm."""

    partitions: dict[str, list[Nodes]]  # name of a partition -> its nodes
    # The partition for jobs that name none; None if there is no such partition.
    default: str | None = None


def ask_sinfo() -> Cluster | None:
    """Return the partitions of the cluster; None if ``sinfo`` is missing, fails or hangs."""
    try:
        done = subprocess.run(
            _SINFO, capture_output=True, text=True, check=True, timeout=_SINFO_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_sinfo(done.stdout)


def parse_sinfo(text: str) -> Cluster:
    """Parse the output of ``sinfo``, which has a line for each kind of nodes of a partition.

    Lines of another form are ignored.
    """
    cluster = Cluster({})
    for printed_name, time, cpus, memory, count, gres in _NODES.findall(text):
        name = printed_name.removesuffix("*")
        if name != printed_name:  # an asterisk marks the default partition
            cluster.default = name
        nodes = Nodes(minutes(time), int(cpus), int(memory), int(count), gpus_in(gres))
        cluster.partitions.setdefault(name, []).append(nodes)
    return cluster


def minutes(time: str) -> float:
    """Return the minutes of a time that Slurm prints as DAYS-HOURS:MINUTES:SECONDS.

    Days and hours may be missing. Any other text, such as ``infinite``, means that there is no
    limit: return infinity.
    """
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):\d+", time)
    if found is None:
        return math.inf
    days, hours, minutes_of_hour = (int(part or 0) for part in found.groups())
    return (days * 24 + hours) * 60 + minutes_of_hour


def refusals(
    request: Request,
    cluster: Cluster,
    *,
    chooses_partition: bool = False,
) -> list[str]:
    """Return why a request can never run on a cluster, and the options that would allow it.

    The list is empty if the request can run. A request runs in one of the partitions that it names,
    or else in the default partition. If none of these partitions can run it, return the reasons of
    the partition that has the fewest reasons. If another partition can run the request, each reason
    also suggests that partition.

    Args:
        request: the request to check.
        cluster: the partitions of the cluster.
        chooses_partition: whether Slurm's plugin for Snakemake chooses among all partitions for a
            request that names none.
    """
    if "clusters" in request.resources:
        return []  # sinfo does not know the partitions of other clusters
    in_extra = _IN_EXTRA.search(request.resources.get("slurm_extra", ""))
    named = in_extra[1] if in_extra else request.resources.get("slurm_partition", "")
    possible: Iterable[str | None] = [cluster.default]
    if named:
        possible = named.split(",")
    elif chooses_partition:
        possible = cluster.partitions
    misfits = {
        name: _misfits(request, name, nodes)
        for name, nodes in cluster.partitions.items()
    }
    misfits_of_possible = [misfits[name] for name in possible if name in misfits]
    if not misfits_of_possible:
        why = "no partition, and none is the default"
        if named:
            why = f"partition {named}, which is not here"
        return [
            f"{why}: set slurm_partition in the profile, to one of {', '.join(misfits)}"
        ]
    fewest = min(misfits_of_possible, key=len)
    for name, reasons in misfits.items():
        if not reasons:
            other = f"--set-resources {request.rule}:slurm_partition={name}"
            return [f"{reason}, or {other}" for reason in fewest]
    return fewest


def _misfits(
    request: Request,
    name: str,
    partition: Sequence[Nodes],
) -> list[str]:
    """Return why the partition ``name`` can never grant a request; an empty list if it can."""
    resource = f"--set-resources {request.rule}"
    model, gpus = _gpus_per_node(request)
    most_gpus = max(nodes.gpus_of(model) for nodes in partition)
    # The option that asks for as many GPUs as a node of the partition has.
    fewer_gpus = f"--config gpus={most_gpus}"
    if not most_gpus:
        fewer_gpus = "--config device=cpu"
    elif "gres" in request.resources:
        kind = f"gpu:{model}" if model else "gpu"
        fewer_gpus = f"{resource}:gres={kind}:{most_gpus}"
    # Only nodes with as many GPUs as requested can run the request. If no node has so many, the
    # user can ask for fewer GPUs. Then the other numbers are compared with the nodes that have the
    # most GPUs.
    with_gpus = [
        nodes for nodes in partition if nodes.gpus_of(model) >= min(gpus, most_gpus)
    ]
    limit = partition[0].minutes  # the same for all nodes of a partition
    cpus = max(nodes.cpus for nodes in with_gpus)
    memory = max(nodes.memory for nodes in with_gpus)
    count = sum(nodes.count for nodes in with_gpus)
    asked_cpus = _cpus_per_node(request)
    asked_memory = request.number("mem_mb") or 0
    # A site's profile may state the memory of each CPU instead of ``mem_mb``.
    memory_per_cpu = request.number("mem_mb_per_cpu")
    if memory_per_cpu:
        asked_memory = memory_per_cpu * asked_cpus
    # Each row: the number requested, its unit, the most that the partition has, and the option that
    # lowers the request.
    compared = [
        (
            request.number("runtime") or 0,
            "minutes",
            limit,
            f"{resource}:runtime={limit}",
        ),
        (gpus, f"{model} GPUs on a node".lstrip(), most_gpus, fewer_gpus),
        (asked_cpus, "CPUs on a node", cpus, f"--set-threads {request.rule}={cpus}"),
        (asked_memory, "MB of memory on a node", memory, f"{resource}:mem_mb={memory}"),
        (request.nodes, "such nodes", count, f"{resource}:nodes={count}"),
    ]
    return [
        f"{asked:,} {unit}, partition {name} gives at most {most:,}: {to_set}"
        for asked, unit, most, to_set in compared
        if asked > most
    ]


def _gpus_per_node(request: Request) -> tuple[str, int]:
    """Return the model and the number of the GPUs that a request asks for on each node.

    If ``gres`` names several models, only the first counts. The model is empty if none is named.
    """
    gpus_by_model = gpus_in(request.resources.get("gres", ""))
    if gpus_by_model:
        return next(iter(gpus_by_model.items()))
    gpus = math.ceil((request.number("gpu") or 0) / request.nodes)
    return request.resources.get("gpu_model", ""), gpus


def _cpus_per_node(request: Request) -> int:
    """Return the CPUs that a request asks for on each node; 0 if it asks for no certain number.

    A site's profile may state ``cpus_per_task``, which overrides the number of threads, and
    ``tasks_per_node``, which overrides the number of tasks.
    """
    cpus = request.number("cpus_per_task")
    if cpus is None:
        cpus = request.number("threads") or 1
    # With a negative ``cpus_per_task``, Slurm's plugin does not state the number of CPUs.
    takes_any_number = cpus < 0 or cpus >= ALL_CORES
    if takes_any_number:
        return 0
    tasks = math.ceil((request.number("tasks") or 1) / request.nodes)
    return cpus * (request.number("tasks_per_node") or tasks)
