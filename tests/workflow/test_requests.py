"""What a run will ask of a cluster, as the rule preflight prints it."""

import os

from tests.support.checkout import Checkout


def test_the_requests_of_the_demo(checkout: Checkout) -> None:
    sinfo = checkout.write(
        "bin/sinfo", "#!/bin/sh\necho 'cpu*|1:00:00|64|256000|4|gpu:8'\n"
    )
    sinfo.chmod(0o755)
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    at_once = (
        "--slurm-init-seconds-before-status-checks 1 --max-jobs-per-timespan 10/1s"
    )
    command = (
        f"snakemake preflight --profile profiles/slurm {at_once} --config scale=demo"
    )
    done = checkout.shell(
        f"{command} 'tasks=[demo_en_fr]'", {**os.environ, "PATH": path}
    ).succeeded()
    train = next(
        line for line in done.said.splitlines() if line.startswith("train_model")
    )
    assert train.split()[4:] == ["1,440", "1"]
    warnings = [line for line in done.said.splitlines() if "gives at most 60" in line]
    assert warnings[0] == (
        "WARNING: train_model: asks for 1,440 minutes, partition cpu gives at most 60: "
        "--set-resources train_model:runtime=60"
    )
    assert all(line.startswith("WARNING: group ") for line in warnings[1:])
    assert "write_model_settings" not in done.said  # a local rule
    log = (checkout / "results/scales/demo/logs/preflight.log").read_text("utf-8")
    assert "submissions: " in log
    assert checkout.files("results") == []
