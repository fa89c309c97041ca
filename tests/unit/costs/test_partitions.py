"""What a cluster has, and what it can never grant."""

import math

import pytest

from convs2s.costs.dry_run import ALL_CORES, Request
from convs2s.costs.partitions import ask_sinfo, minutes, parse_sinfo, refusals

SINFO = """\
cpu*|30:00|8|16000|4|(null)
gpu|2:00:00|16|64000|2|gpu:a100:4(S:0-1),gpu:v100:2
gpu|2:00:00|64+|256000+|1|(null)
long|infinite|8|16000|4|(null)
"""
CLUSTER = parse_sinfo(SINFO)


def request(**resources: object) -> Request:
    return Request(
        "job", "job", {name: str(value) for name, value in resources.items()}
    )


def refused(**resources: object) -> list[str]:
    return refusals(request(**resources), CLUSTER)


def reasons(**resources: object) -> list[str]:
    """The reasons without the options that would help."""
    return [reason.partition(":")[0] for reason in refused(**resources)]


def test_partitions_of_sinfo() -> None:
    assert CLUSTER.default == "cpu"
    limits = {name: nodes[0].minutes for name, nodes in CLUSTER.partitions.items()}
    assert limits == {"cpu": 30, "gpu": 120, "long": math.inf}
    having, without = CLUSTER.partitions["gpu"]
    assert (having.count, having.cpus, having.memory) == (2, 16, 64000)
    assert having.gpus == {"a100": 4, "v100": 2}
    assert (without.cpus, without.memory, without.gpus) == (64, 256000, {})
    assert parse_sinfo("some notice\n").partitions == {}


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("30:00", 30),
        ("1:00:00", 60),
        ("2-03:04:05", 3064),
        ("infinite", math.inf),
        ("n/a", math.inf),
    ],
)
def test_times_of_slurm(time: str, expected: float) -> None:
    assert minutes(time) == expected


def test_what_fits_is_not_refused() -> None:
    assert refused(threads=8, mem_mb=16000, runtime=30, gpu=0, nodes=1) == []
    assert refused(mem_mb="<TBD>", threads=ALL_CORES) == []
    assert refused(gpu=6, slurm_partition="gpu", threads=16) == []
    assert refused(gpu=8, nodes=2, slurm_partition="gpu") == []
    assert refused(threads=64, slurm_partition="cpu,gpu") == []
    assert refused(cpus_per_task=-1, threads=128) == []


def test_more_time_than_the_partition_allows() -> None:
    (one,) = refused(runtime=60)
    assert one == (
        "60 minutes, partition cpu gives at most 30: --set-resources job:runtime=30, or "
        "--set-resources job:slurm_partition=gpu"
    )
    assert refused(runtime=60, slurm_extra="--partition=gpu --x") == []
    assert refusals(request(runtime=1440), CLUSTER, chooses_partition=True) == []
    assert len(refused(runtime=1440, slurm_partition="cpu,gpu")) == 1


def test_more_than_any_node_has() -> None:
    assert reasons(threads=9, mem_mb=16001) == [
        "9 CPUs on a node, partition cpu gives at most 8",
        "16,001 MB of memory on a node, partition cpu gives at most 16,000",
    ]
    assert reasons(threads=2, tasks_per_node=8) == [
        "16 CPUs on a node, partition cpu gives at most 8"
    ]
    assert reasons(threads=8, mem_mb_per_cpu=4000) == [
        "32,000 MB of memory on a node, partition cpu gives at most 16,000"
    ]
    assert reasons(nodes=5) == ["5 such nodes, partition cpu gives at most 4"]
    # The nodes with GPUs count, not larger ones beside them.
    assert reasons(threads=32, gpu=1, slurm_partition="gpu") == [
        "32 CPUs on a node, partition gpu gives at most 16"
    ]


def test_gpus_that_no_node_has() -> None:
    (one,) = refused(gpu=8, slurm_partition="gpu")
    assert one == "8 GPUs on a node, partition gpu gives at most 6: --config gpus=6"
    (one,) = refused(gpu=1)
    assert one.endswith(
        ": --config device=cpu, or --set-resources job:slurm_partition=gpu"
    )
    assert reasons(gpu=4, gpu_model="v100", slurm_partition="gpu") == [
        "4 v100 GPUs on a node, partition gpu gives at most 2"
    ]
    (one,) = refused(gres="gpu:a100:8", gpu=0, slurm_partition="gpu")
    assert one.endswith(": --set-resources job:gres=gpu:a100:4")


def test_no_partition_to_run_in() -> None:
    assert reasons(slurm_partition="gpus") == ["partition gpus, which is not here"]
    without_default = parse_sinfo(SINFO.replace("*", ""))
    assert refusals(request(), without_default) == [
        "no partition, and none is the default: set slurm_partition in the profile, to one of "
        "cpu, gpu, long"
    ]
    assert refusals(request(clusters="other"), without_default) == []


def test_without_sinfo(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask_sinfo() is None
