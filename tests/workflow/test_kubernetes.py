"""The profile for Kubernetes, with a stand-in for kubectl that runs each job at once, here."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.checkout import Checkout

KUBECTL = """\
#!/usr/bin/env python3
import os, subprocess, sys
from pathlib import Path
import yaml

cluster, verb = Path(os.environ["CLUSTER"]), sys.argv[1]
if verb == "create":
    job = yaml.safe_load(sys.stdin)
    name = f"{job['metadata']['generateName']}{len(list(cluster.glob('*.yaml')))}"
    cluster.joinpath(f"{name}.yaml").write_text(yaml.safe_dump(job))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    output = cluster.joinpath(f"{name}.log").open("w")
    place = container["workingDir"]
    done = subprocess.run(container["command"], cwd=place, stdout=output, stderr=output)
    cluster.joinpath(name).write_text("FailureTarget Failed" if done.returncode else "Complete")
    print(name)
elif verb == "get":
    print(cluster.joinpath(sys.argv[3]).read_text())
"""

# Fails at first, as a job with too little memory does.
FLAKY = """\
rule two_words:
    output:
        "attempts/{name}",
    threads: 4
    shell:
        "echo {resources.mem_mb} > {output}; mkdir seen 2>/dev/null && exit 1 || true"
"""


@pytest.fixture
def one_rule(root: Path, tmp_path: Path) -> Checkout:
    """A workflow of one rule, with this profile, which asks as often as a test would like."""
    shutil.copytree(root / "profiles", tmp_path / "profiles")
    path = tmp_path / "profiles/kubernetes/profile.yaml"
    profile = yaml.safe_load(path.read_text("utf-8"))
    # Snakemake ends with the span, which is a minute in the profile.
    often = {"seconds-between-status-checks": 1, "max-jobs-per-timespan": "10/1s"}
    path.write_text(yaml.safe_dump(profile | often), "utf-8")
    (tmp_path / "Snakefile").write_text(FLAKY)
    return Checkout(tmp_path)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """The folder of the stand-in's jobs."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    kubectl = folder / "bin/kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    return folder


def environment(cluster: Path, **variables: str) -> dict[str, str]:
    path = os.pathsep.join([f"{cluster}/bin", os.environ["PATH"]])
    return {**os.environ, "PATH": path, "CLUSTER": str(cluster), **variables}


def jobs(cluster: Path) -> list[dict[str, Any]]:
    return [yaml.safe_load(file.read_text("utf-8")) for file in sorted(cluster.glob("*.yaml"))]


def test_a_job_runs_in_the_image_and_again_with_more_memory(
    one_rule: Checkout, cluster: Path
) -> None:
    command = "snakemake attempts/one --profile profiles/kubernetes --latency-wait 1"
    one_rule.shell(command, environment(cluster, CONVS2S_IMAGE="registry/image:1")).succeeded()
    assert (one_rule / "attempts/one").read_text() == "8000\n"
    first, second = jobs(cluster)
    assert second["metadata"]["generateName"] == "two-words-"
    assert second["spec"]["backoffLimit"] == 0
    pod = second["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (container["image"], container["workingDir"]) == (
        "registry/image:1",
        str(one_rule.folder),
    )
    assert pod["activeDeadlineSeconds"] == 2 * 60 * 60
    stop = container["lifecycle"]["preStop"]["exec"]["command"]
    (seconds,) = re.findall(r"^kill -TERM -1; sleep (\d+)$", stop[-1])
    assert int(seconds) < pod["terminationGracePeriodSeconds"]
    assert container["resources"] == {
        "requests": {"cpu": 4, "memory": "8000M"},
        "limits": {"memory": "8000M", "nvidia.com/gpu": 0},
    }
    volumes = {volume.pop("name"): volume for volume in pod["volumes"]}
    mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    assert mounted == {
        "/work": {"persistentVolumeClaim": {"claimName": "convs2s"}},
        "/dev/shm": {"emptyDir": {"medium": "Memory"}},
    }
    assert first["spec"]["template"]["spec"]["activeDeadlineSeconds"] == 60 * 60
