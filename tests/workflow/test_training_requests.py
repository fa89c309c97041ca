"""What the paper's largest training asks of a scheduler: the lines of docs/cluster.md, as sent."""

import os
import re
from pathlib import Path

import pytest
import yaml

from tests.support.checkout import Checkout

MODEL = "results/wmt14_en_fr/models/wmt14_en_fr/seed1/model.safetensors"

# They note what they are asked and refuse it.
SBATCH = '#!/bin/sh\nprintf "%s\\n" "$*" > "$SAID"\nexit 1\n'
NOT_ON_THE_PAGE = re.compile(
    r"--parsable |--requeue |--export=ALL |--(?:job-name|output|comment) \S+ |-p main | -D \S+"
)
SINFO = "#!/bin/sh\necho 'main*'\n"
SACCT = "#!/bin/sh\n"  # without it the plugin is not loaded, or guesses no account


def asked(checkout: Checkout, profile: str, *options: str) -> str:
    """What a scheduler is sent for the training, whose inputs count as made."""
    prepared = [
        f"dataset/{split}.{kind}"
        for split in ("train", "valid")
        for kind in ("arrow", "json")
    ]
    for name in (
        *prepared,
        *(f"vocabulary/{name}" for name in ("codes", "en.tsv", "fr.tsv")),
    ):
        checkout.write(f"results/wmt14_en_fr/{name}", b"")
    stubs = {"sbatch": SBATCH, "sinfo": SINFO, "sacct": SACCT}
    for name, text in stubs.items():
        checkout.write(f"bin/{name}", text).chmod(0o755)
    # By the profiles Snakemake would stay until a minute of submissions, or of waiting, is over.
    once = "--retries 0 --max-jobs-per-timespan 10/1s --seconds-between-status-checks 1"
    once += " --slurm-init-seconds-before-status-checks 1"
    command = f"snakemake {MODEL} --profile profiles/{profile} {once}"
    rules = "--allowed-rules train_model write_model_settings"
    path, said = (
        os.pathsep.join([f"{checkout.folder}/bin", os.environ["PATH"]]),
        checkout / "said",
    )
    environment = {**os.environ, "PATH": path, "SAID": str(said)}
    done = checkout.shell(
        f"{command} {rules} --config {' '.join(options)}", environment
    )
    assert said.exists(), done.said
    return said.read_text()


def documented(root: Path) -> list[str]:
    return re.findall(
        r"^ {4}(sbatch .*)$", (root / "docs/cluster.md").read_text("utf-8"), re.M
    )


@pytest.mark.parametrize(("options", "number"), [("gpus=8", 0), ("gpus=4 nodes=2", 1)])
def test_slurm_is_asked_for_what_the_page_says(
    root: Path, checkout: Checkout, options: str, number: int
) -> None:
    said, page = asked(checkout, "slurm", options), documented(root)
    sent = NOT_ON_THE_PAGE.sub("", said.partition(" --wrap")[0])
    assert {"sbatch", *sent.split()} == {*page[number].split()}


@pytest.mark.parametrize(
    "model",
    [
        ["--default-resources", "gpu_model=a100"],
        ["--set-resources", "train_model:gpu_model=a100"],
    ],
)
def test_slurm_is_asked_for_gpus_of_a_model_in_one_way(
    checkout: Checkout, model: list[str]
) -> None:
    said = asked(checkout, "slurm", "gpus=4", "nodes=2", *model)
    assert re.findall(r"--g\w+=\S*", said.partition(" --wrap")[0]) == [
        "--gres=gpu:4",
        "--gpus=a100:8",
    ]


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
    assert re.findall(r" (?:-p|--gpus\S*)[ =]\S+", said.partition(" --wrap")[0]) == [
        " -p gpu",
        " --gpus=a100:4",
    ]


def test_a_limit_on_all_jobs_is_no_request_of_one(checkout: Checkout) -> None:
    said = asked(checkout, "slurm", "nodes=2", "--resources", "gpu=16")
    asks = re.findall(r"--g\w+=\S*", said.partition(" --wrap")[0])
    assert asks == ["--gres=gpu:1", "--gpus=2"]


@pytest.mark.parametrize(
    ("options", "number"),
    [pytest.param("gpus=8", 0, marks=pytest.mark.slow), ("gpus=4 nodes=2", 1)],
)
def test_another_scheduler_is_asked_for_the_same(
    root: Path, checkout: Checkout, options: str, number: int
) -> None:
    def requests(line: str) -> dict[str, str]:
        return dict(re.findall(r"--(nodes|cpus-per-task|mem)[= ](\d+)", line))

    said = asked(checkout, "generic", options)
    assert requests(said) == requests(documented(root)[number])
    assert f"--gpus-per-node={8 if number == 0 else 4} " in said
    assert "--ntasks-per-node=1 " in said
