"""What a real Slurm with uneven nodes grants a training of eight GPUs: what each worker needs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkout import Checkout, Done, check_out
from tests.support.cluster import MODEL, run, set_up_profiles, submitted, training
from tests.support.slurm import Slurm, running_slurm

pytestmark = pytest.mark.slurm

# Python runs this first, in every process of the job: where workers would be started, it notes what
# the node was granted instead.
NOTE_GRANTS = """\
import os, sys
words = sys.orig_argv
if "convs2s" in words and "train" in words:
    if words[words.index("--nodes") + 1] == "1" or "CONVS2S_MEETING" in os.environ:
        gpus = os.environ["CUDA_VISIBLE_DEVICES"].count(",") + 1
        workers, threads = (words[words.index(f"--{name}") + 1] for name in ("workers", "threads"))
        cpus = os.environ["SLURM_CPUS_ON_NODE"]
        with open(f"grants/{os.environ['SLURMD_NODENAME']}", "w") as stream:
            print(workers, threads, gpus, cpus, file=stream)
        os._exit(1)
"""


@pytest.fixture(scope="module")
def uneven() -> Iterator[Slurm]:
    """A Slurm whose first node has more GPUs than the second."""
    with running_slurm(cpus=64, gpus=(9, 5)) as running:
        yield running


def granted(slurm: Slurm, checkout: Checkout, options: str) -> tuple[Done, list[list[str]]]:
    """Submit the training; what it was granted, node by node."""
    checkout.write("sitecustomize.py", NOTE_GRANTS)
    (checkout / "grants").mkdir()
    path = os.pathsep.join([str(checkout.folder), os.environ.get("PYTHONPATH", "")])
    command = f"snakemake {MODEL} --profile profiles/{options} --retries 0"
    rules = "--allowed-rules train_model write_model_settings"
    done = checkout.shell(f"{command} {rules}", slurm.environment | {"PYTHONPATH": path})
    return done, [file.read_text().split() for file in sorted((checkout / "grants").iterdir())]


@pytest.mark.slow
def test_a_training_on_a_whole_node_has_the_workers_that_it_asked_for(
    uneven: Slurm, root: Path, tmp_path: Path
) -> None:
    checkout = training(root, tmp_path, {"threads": 4}, device="auto", cores=None, gpus=4)
    # The batch job sees all of the node; a step, as of the Slurm plugin, what was asked for.
    profile = (checkout / "profiles/generic/profile.yaml").read_text("utf-8")
    whole = profile.replace("--ntasks-per-node=1", "--exclusive --nodelist=node1")
    checkout.write("profiles/generic/profile.yaml", whole)
    done, grants = granted(uneven, checkout, "generic")
    assert [grant[:3] for grant in grants] == [["4", "4", "9"]], done.said


@pytest.mark.parametrize(
    ("profile", "nodes", "gpus"),
    [
        ("slurm", 2, 4),
        pytest.param("slurm", 1, 8, marks=pytest.mark.slow),
        pytest.param("generic", 2, 4, marks=pytest.mark.slow),
        pytest.param("generic", 1, 8, marks=pytest.mark.slow),
    ],
)
def test_each_worker_has_a_gpu_and_its_threads(
    uneven: Slurm, root: Path, tmp_path: Path, profile: str, nodes: int, gpus: int
) -> None:
    checkout = training(
        root, tmp_path, {"threads": 4}, device="auto", cores=None, nodes=nodes, gpus=gpus
    )
    done, grants = granted(uneven, checkout, profile)
    each = [str(gpus), "4", str(gpus)]
    assert [grant[:3] for grant in grants] == nodes * [each], done.said
    if nodes > 1:  # else the plugin's own step asks for no more CPUs than this machine has
        assert [grant[3] for grant in grants] == nodes * [str(4 * gpus)]
    memory = max(16_000, gpus * 3_001)  # 3 GB of a process on a GPU, and the tiny model
    ((nodes_granted, cpus, asked),) = submitted(uneven, done.said, "%D %C %m")
    assert (nodes_granted, cpus) == (str(nodes), str(4 * gpus * nodes))
    assert abs(int(asked.removesuffix("M")) - memory) < 100


# Stands for nodes without the GPUs that Slurm grants: Snakemake alone sees them.
ON_CPUS = """\
import os, sys
if not any(word.endswith("snakemake") for word in sys.orig_argv):
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS"):
        os.environ.pop(name, None)
if "convs2s" in sys.orig_argv and "--device" in sys.argv:
    sys.argv[sys.argv.index("--device") + 1] = "cpu"
"""


@pytest.mark.slow
def test_eight_workers_on_two_nodes_make_the_demo(
    uneven: Slurm, root: Path, tmp_path: Path
) -> None:
    checkout = check_out(root, tmp_path)
    set_up_profiles(checkout.folder)
    checkout.configure({"gpus": 4, "nodes": 2})
    checkout.write("on_cpus/sitecustomize.py", ON_CPUS)
    path = f"PYTHONPATH={checkout.folder}/on_cpus:$PYTHONPATH"
    command = "snakemake results/demo_en_fr/bleu.txt --profile profiles/slurm"
    run(uneven, checkout, f"{path} {command}")
    for seed in (1, 2):
        text = (checkout / f"results/demo_en_fr/models/demo/seed{seed}/training.json").read_text()
        assert json.loads(text)["manifest"]["workers"] == 8
    assert "BLEU" in (checkout / "results/demo_en_fr/bleu.txt").read_text()
