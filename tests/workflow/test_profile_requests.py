"""What the paper's largest training asks of a scheduler: the lines of docs/cluster.md, as sent."""

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.support.checkout import Checkout

MODEL = "results/wmt14_en_fr/models/wmt14_en_fr/seed1/model.safetensors"
INPUTS = (
    "dataset/train dataset/valid vocabulary/codes vocabulary/en.tsv vocabulary/fr.tsv"
)

STUBS = {
    # It notes what it is asked and refuses it.
    "sbatch": '#!/bin/sh\nprintf "%s\\n" "$*" > "$SAID"\nexit 1\n',
    "sinfo": "#!/bin/sh\necho 'main*'\n",
    "sacct": "#!/bin/sh\n",  # without it the plugin is not loaded, or guesses no account
}
NOT_ON_THE_PAGE = re.compile(
    r"--parsable |--requeue |--export=ALL |--(?:job-name|output|comment) \S+ |-p main | -D \S+"
)


def asked(checkout: Checkout, profile: str, options: str) -> str:
    """What a scheduler is sent for the training, whose inputs count as made."""
    for name in INPUTS.split():
        ends = (".arrow", ".json") if name.startswith("dataset") else ("",)
        for end in ends:
            checkout.write(f"results/wmt14_en_fr/{name}{end}", b"")
    for name, text in STUBS.items():
        checkout.write(f"bin/{name}", text).chmod(0o755)
    # By the profiles Snakemake would stay until a minute of submissions, or of waiting, is over.
    once = "--retries 0 --max-jobs-per-timespan 10/1s --seconds-between-status-checks 1"
    once += " --slurm-init-seconds-before-status-checks 1"
    rules = "--allowed-rules train_model write_model_settings"
    command = f"snakemake {MODEL} --profile profiles/{profile} {once} {rules}"
    path = os.pathsep.join([f"{checkout.folder}/bin", os.environ["PATH"]])
    said = checkout / "said"
    environment = {**os.environ, "PATH": path, "SAID": str(said)}
    done = checkout.typed(f"{command} --config {options}", environment)
    assert said.exists(), done.said
    return said.read_text().partition(" --wrap")[0]


def documented(root: Path) -> list[str]:
    page = (root / "docs/cluster.md").read_text("utf-8")
    return re.findall(r"^ {4}(sbatch .*)$", page, re.M)


@pytest.mark.parametrize(("options", "number"), [("gpus=8", 0), ("gpus=4 nodes=2", 1)])
def test_slurm_is_asked_for_what_the_page_says(
    root: Path, checkout: Checkout, options: str, number: int
) -> None:
    sent = NOT_ON_THE_PAGE.sub("", asked(checkout, "slurm", options))
    assert {"sbatch", *sent.split()} == {*documented(root)[number].split()}


@pytest.mark.parametrize(
    ("options", "asks"),
    [
        # A limit on all jobs is no request of one.
        ("nodes=2 --resources gpu=16", ["--gres=gpu:1", "--gpus=2"]),
        pytest.param(
            "gpus=4 nodes=2 --default-resources gpu_model=a100",
            ["--gres=gpu:4", "--gpus=a100:8"],
            marks=pytest.mark.slow,
        ),
        (
            "gpus=4 nodes=2 --set-resources train_model:gpu_model=a100",
            ["--gres=gpu:4", "--gpus=a100:8"],
        ),
    ],
)
def test_slurm_is_asked_for_gpus_in_one_way(
    checkout: Checkout, options: str, asks: list[str]
) -> None:
    assert re.findall(r"--g\w+=\S*", asked(checkout, "slurm", options)) == asks


def test_the_profile_may_have_a_partition_of_gpus(
    root: Path, checkout: Checkout
) -> None:
    profile = (root / "profiles/slurm/profile.yaml").read_text("utf-8")
    stated = re.sub(r"^# (?=set-resources:|  \w+: [&*{])", "", profile, flags=re.M)
    rules = "\n".join(file.read_text("utf-8") for file in root.glob("rules/*.smk"))
    on_gpus = re.findall(
        r"^rule (\w+):(?:(?!^rule ).*\n)+?        (?:\*\*ON_DEVICE|gpu=)", rules, re.M
    )
    assert {*yaml.safe_load(stated)["set-resources"]} == {*on_gpus}
    checkout.write("profiles/slurm/profile.yaml", stated)
    said = asked(checkout, "slurm", "gpus=4")
    found = re.findall(r" (?:-p|--gpus\S*)[ =]\S+", said)
    assert found == [" -p gpu", " --gpus=a100:4"]


@pytest.mark.parametrize(
    ("options", "gpus", "number"),
    [pytest.param("gpus=8", 8, 0, marks=pytest.mark.slow), ("gpus=4 nodes=2", 4, 1)],
)
def test_another_scheduler_is_asked_for_the_same(
    root: Path, checkout: Checkout, options: str, gpus: int, number: int
) -> None:
    def requests(line: str) -> dict[str, str]:
        return dict(re.findall(r"--(nodes|cpus-per-task|mem)[= ](\d+)", line))

    said = asked(checkout, "generic", options)
    assert requests(said) == requests(documented(root)[number])
    assert {f"--gpus-per-node={gpus}", "--ntasks-per-node=1"} <= {*said.split()}
