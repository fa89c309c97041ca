"""What the paper's largest training asks of a scheduler: the lines of docs/cluster.md, as sent."""

import re
from pathlib import Path

import yaml

from tests.support.checkout import Checkout

FOLDER = "results/wmt14_en_fr"
INPUTS = """
dataset/train.arrow dataset/train.json dataset/valid.arrow dataset/valid.json
vocabulary/codes vocabulary/en.tsv vocabulary/fr.tsv
"""

STUBS = {
    # It notes what it is asked and refuses it.
    "sbatch": 'printf "%s\\n" "$*" > said; exit 1',
    "sinfo": "echo 'main*'",
    "sacct": "",  # without it the plugin is not loaded, or guesses no account
}
NOT_ON_THE_PAGE = re.compile(
    r"--parsable |--requeue |--export=ALL |--(?:job-name|output|comment) \S+ |-p main | -D \S+"
)


def asked(checkout: Checkout, profile: str, options: str) -> str:
    """What a scheduler is sent for the training, whose inputs count as made."""
    for name in INPUTS.split():
        checkout.write(f"{FOLDER}/{name}", b"")
    model = f"{FOLDER}/models/wmt14_en_fr/seed1/model.safetensors"
    # By the profiles Snakemake would stay until a minute of submissions, or of waiting, is over.
    once = "--retries 0 --max-jobs-per-timespan 10/1s --seconds-between-status-checks 1"
    once += " --slurm-init-seconds-before-status-checks 1"
    rules = "--allowed-rules train_model write_model_settings"
    command = f"snakemake {model} --profile profiles/{profile} {once} {rules}"
    environment = checkout.with_programs(**STUBS)
    done = checkout.typed(f"{command} --config {options}", environment)
    said = checkout / "said"
    assert said.exists(), done.said
    return said.read_text().partition(" --wrap")[0]


def documented(root: Path) -> list[str]:
    page = (root / "docs/cluster.md").read_text("utf-8")
    return re.findall(r"^ {4}(sbatch .*)$", page, re.M)


def test_slurm_is_asked_for_what_the_page_says(root: Path, checkout: Checkout) -> None:
    sent = NOT_ON_THE_PAGE.sub("", asked(checkout, "slurm", "gpus=4 nodes=2"))
    assert {"sbatch", *sent.split()} == {*documented(root)[1].split()}
    # A limit on all jobs is no request of one.
    sent = asked(checkout, "slurm", "nodes=2 --resources gpu=16")
    assert re.findall(r"--g\w+=\S*", sent) == ["--gres=gpu:1", "--gpus=2"]


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


def test_another_scheduler_is_asked_for_the_same(
    root: Path, checkout: Checkout
) -> None:
    def requests(line: str) -> dict[str, str]:
        return dict(re.findall(r"--(nodes|cpus-per-task|mem)[= ](\d+)", line))

    said = asked(checkout, "generic", "gpus=8")
    assert requests(said) == requests(documented(root)[0])
    assert {"--gpus-per-node=8", "--ntasks-per-node=1"} <= {*said.split()}
