"""Snakemake itself starts a training again by its progress: with stand-ins for trainings."""

from pathlib import Path

from tests.support.checkout import Checkout

# One saves a state at each of its first six starts and never ends; the other never saves one.
TRAININGS = """\
from convs2s.pipeline.tries import count_tries

onstart:
    count_tries(workflow.scheduler, "train_model")

rule all:
    input: "slow/model.safetensors", "broken/model.safetensors"

rule train_model:
    output: "{name}/model.safetensors"
    resources: mem_mb=lambda w, attempt: 100 * attempt
    shell:
        "mkdir -p {wildcards.name}/state/digest; cd {wildcards.name};"
        " echo {resources.mem_mb} >> starts;"
        " if [ {wildcards.name} = slow ] && [ $(wc -l < starts) -le 6 ];"
        " then sleep 0.05; touch state/digest/last.safetensors; fi; exit 75"
"""


def test_tries_are_counted_by_progress(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.write("Snakefile", TRAININGS)
    done = checkout.snakemake("--keep-going", "--retries", "2")
    assert done.code == 1
    starts = {
        name: [int(memory) for memory in (tmp_path / name / "starts").read_text().split()]
        for name in ("slow", "broken")
    }
    assert starts == {"slow": 7 * [100] + [200, 300], "broken": [100, 200, 300]}, done.said
