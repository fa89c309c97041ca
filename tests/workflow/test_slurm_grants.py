"""What a real Slurm with uneven nodes grants a training of eight GPUs: what each worker needs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import Checkout
from tests.workflow.cluster import LOG, TRAIN, submit, submitted, training
from tests.workflow.slurm import Slurm, running_slurm

pytestmark = pytest.mark.slurm

# Python runs this first, in every process of a job. The machine has as many CPUs as nodes claim, as
# a Snakemake in a job gives rules no more threads than there are. Where workers would be started,
# what the node was granted is noted instead.
NOTE_GRANTS = """\
import contextlib, os, sys
if "snakemake" in " ".join(sys.orig_argv):
    import snakemake.utils
    snakemake.utils.available_cpu_count = lambda: 64
if "convs2s" in sys.orig_argv and "train" in sys.orig_argv:
    from convs2s.training import launch

    def note(options, command, heartbeats):
        workers = dict(option.split("=", 1) for option in options)["--nproc-per-node"]
        gpus = os.environ["CUDA_VISIBLE_DEVICES"].count(",") + 1
        words = [workers, os.environ["OMP_NUM_THREADS"], gpus, os.environ["SLURM_CPUS_ON_NODE"]]
        with open(f"grants/{os.environ['SLURMD_NODENAME']}", "w") as stream:
            print(*words, file=stream)
        os._exit(1)

    launch.torchrun = note
    launch.held_device = lambda *names, **numbers: contextlib.nullcontext("cpu")
"""


@pytest.fixture(scope="module")
def uneven() -> Iterator[Slurm]:
    """A Slurm whose first node has more GPUs than the second."""
    with running_slurm(cpus=64, gpus=(9, 5)) as running:
        yield running


def granted(
    slurm: Slurm, checkout: Checkout, options: str, **configured: int
) -> tuple[str, list[list[str]]]:
    """Submit the training once; workers, threads of each, GPUs and CPUs, node by node."""
    checkout.configure(checkout.options() | configured)
    checkout.write("sitecustomize.py", NOTE_GRANTS)
    (checkout / "grants").mkdir()
    path = os.pathsep.join([str(checkout.folder), os.environ.get("PYTHONPATH", "")])
    command = f"{TRAIN} --retries 0 --profile profiles/{options}"
    said = submit(slurm, checkout, command, PYTHONPATH=path)
    return said, [
        file.read_text().split() for file in sorted((checkout / "grants").iterdir())
    ]


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Checkout:
    """The workflow with a training on GPUs, of four threads for each."""
    return training(root, tmp_path, {"threads": 4}, device="auto", cores=None)


@pytest.mark.slow
def test_a_training_on_a_whole_node_has_the_workers_that_it_asked_for(
    uneven: Slurm, checkout: Checkout
) -> None:
    # The batch job sees all of the node; a step, as of the Slurm plugin, what was asked for.
    profile = checkout.read("profiles/generic/profile.yaml")
    whole = profile.replace("--ntasks-per-node=1", "--exclusive --nodelist=node1")
    checkout.write("profiles/generic/profile.yaml", whole)
    said, grants = granted(uneven, checkout, "generic", gpus=4)
    assert [grant[:3] for grant in grants] == [["4", "4", "9"]], said


@pytest.mark.parametrize(
    ("profile", "nodes", "gpus"),
    [
        ("slurm", 2, 4),
        pytest.param("generic", 1, 8, marks=pytest.mark.slow),
    ],
)
def test_each_worker_has_a_gpu_and_its_threads(
    uneven: Slurm, checkout: Checkout, profile: str, nodes: int, gpus: int
) -> None:
    said, grants = granted(uneven, checkout, profile, nodes=nodes, gpus=gpus)
    each = [str(gpus), "4", str(gpus)]
    assert [grant[:3] for grant in grants] == nodes * [each], said
    assert [grant[3] for grant in grants] == nodes * [str(4 * gpus)]
    memory = max(16_000, gpus * 3_001)  # 3 GB of a process on a GPU, and the tiny model
    ((nodes_granted, cpus, asked),) = submitted(uneven, said, "%D %C %m")
    assert (nodes_granted, cpus) == (str(nodes), str(4 * gpus * nodes))
    assert abs(int(asked.removesuffix("M")) - memory) < 100


@pytest.mark.slow
def test_gpus_that_are_known_as_gres_alone_have_a_worker_each(
    uneven: Slurm, checkout: Checkout
) -> None:
    gres = "--set-resources train_model:gpu=0 train_model:gres=gpu:8"
    said, grants = granted(
        uneven, checkout, f"slurm {gres} --set-threads train_model=16"
    )
    assert [grant[:3] for grant in grants] == [["8", "2", "8"]], said
    assert submitted(uneven, said, "%C") == [["16"]]


def test_fewer_gpus_than_the_configuration_says_are_refused(
    uneven: Slurm, checkout: Checkout
) -> None:
    fewer = "slurm --set-resources train_model:gpu=4"
    said, grants = granted(uneven, checkout, fewer, gpus=8)
    assert submitted(uneven, said, "%T") == [["FAILED"]]
    assert grants == []
    (error,) = checkout.read(LOG).splitlines()
    assert error.startswith("convs2s: error: 8 workers are asked for, with a GPU each ")
    assert "but only 4 GPUs were granted on this node (CUDA_VISIBLE_DEVICES=" in error
