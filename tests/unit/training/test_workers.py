"""Several workers make the updates of one."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import run

from convs2s.config.model import BatchLimits
from convs2s.data.batches import Indices, Rows, plan_batches
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.checksums import sha256
from convs2s.training import workers as workers_module
from convs2s.training.data import TrainingData
from convs2s.training.launch import (
    MEETING,
    SHUTDOWN_SECONDS,
    check_grant,
    launch,
    torchrun,
    torchrun_options,
)
from convs2s.training.loading import permuted_sources, split_batch
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater
from convs2s.training.workers import Gradients, Workers
from tests.support import tiny
from tests.support.together import meet, start, train_together
from tests.support.updates import make_update

WHOLE = BatchLimits(sentences=16, micro_batch_tokens=None)
SPLIT = BatchLimits(sentences=16, micro_batch_tokens=40)


def twenty_updates(
    workers: Workers, task: Path
) -> tuple[list[Any], list[float], float]:
    """Return the parameters after 20 updates and one of a single pair; validation before, after."""
    one = tiny.trainer(task, task / "none", workers=workers, batch=WHOLE)
    permuted = permuted_sources(one.valid)
    before = [
        one.updater.validate(one.valid, sources=sources) for sources in (None, permuted)
    ]
    for epoch in (1, 2):
        for number, rows in enumerate(one.plan(epoch)):
            make_update(one.updater, one.train, rows, Moment(epoch, number, 0.25))
    make_update(one.updater, one.train, np.array([3]), Moment(3, 0, 0.25))
    parameters = [parameter.detach().numpy() for parameter in one.network.parameters()]
    return parameters, before, one.updater.validate(one.valid)


def test_two_workers_make_the_updates_of_one(task: Path, tmp_path: Path) -> None:
    alone, before, after = twenty_updates(Workers(), task)
    first, second = start(tmp_path / "meeting", 2, meet, twenty_updates, task)
    for mine, its, other in zip(alone, first[0], second[0], strict=True):
        np.testing.assert_allclose(its, mine, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(its, other)
    assert first[1] == second[1] == before
    assert first[2] == second[2] == pytest.approx(after, abs=1e-9)


def test_a_training_of_two_workers_with_dropout_repeats(
    task: Path, tmp_path: Path
) -> None:
    settings = tiny.settings(maximum_epochs=1)
    assert settings.architecture.dropout > 0
    paths = [tmp_path / name / "model.safetensors" for name in ("a", "b")]
    for path in paths:
        train_together(
            tmp_path / f"meeting {path.parent.name}", 2, tiny.job(task, path, settings)
        )
    assert sha256(paths[0]) == sha256(paths[1])
    assert '"workers": 2' in (tmp_path / "a" / "training.json").read_text()


def exchanged(workers: Workers, task: Path) -> tuple[list[int], int]:
    """Make an update in small buckets.

    Returns:
        How many buckets had been sent off when each of the worker's backward passes ended, and how
        many there are.
    """
    workers_module.BUCKET = 600
    one = tiny.trainer(task, task / "none", workers=workers, batch=SPLIT)
    updater, sent, add = one.updater, [], Updater._add_gradient

    def spied(self: Updater, *arguments: Any) -> Tensor | None:
        loss = add(self, *arguments)
        sent.append(len(updater._gradients._exchanges))
        return loss

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "_add_gradient", spied)
        make_update(updater, one.train, np.arange(16), Moment(1, 0, 0.25))
    return sent, len(updater._gradients._buckets)


def test_gradients_are_exchanged_while_the_last_backward_pass_goes_on(
    task: Path, tmp_path: Path
) -> None:
    for sent, buckets in start(tmp_path / "meeting", 2, meet, exchanged, task):
        assert buckets > 3
        assert sent[:-1] == [0] * (len(sent) - 1)
        assert sent[-1] == buckets


def differ(workers: Workers) -> None:
    workers.check_same([torch.ones(2), torch.tensor([1.0 + workers.rank])])


def test_workers_that_start_differently_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"worker 0: the workers' parameters differ"):
        start(tmp_path / "meeting", 2, meet, differ)


@pytest.mark.parametrize(
    ("tokens", "workers"), [(None, 2), (40, 2), (40, 3), (None, 16), (8, 4)]
)
def test_every_worker_has_as_many_micro_batches(
    task: Path, tokens: int | None, workers: int
) -> None:
    store = TrainingData.read(task).train
    rows = np.arange(16)
    lengths = np.array([list(map(len, store[row])) for row in range(16)])
    found = split_batch(rows, lengths, tokens, workers)
    assert len(found) % workers == 0
    assert [row for one in found for row in one.rows] == list(rows)
    assert [one.key for one in found] == [(index,) for index in range(len(found))]
    assert all(one.size <= (tokens or one.size) or len(one.rows) == 1 for one in found)


@pytest.fixture(scope="module")
def batches() -> list[tuple[Indices, Rows]]:
    """Some batches of WMT's recipes, of lengths as news have them: log-normal, 26 on average."""
    generator = np.random.default_rng(1)
    sources = (
        np.clip(generator.lognormal(3.1, 0.62, 50_000), 1, 170).astype(np.int32) + 1
    )
    targets = (
        np.clip(sources * generator.lognormal(0.1, 0.22, 50_000), 1, 175).astype(
            np.int32
        )
        + 1
    )
    plan = plan_batches(sources, targets, BatchLimits(sentences=256), generator)
    lengths = np.column_stack([sources, targets]).astype(np.int64)
    return [(lengths, rows) for rows in plan[:40]]


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 16])
def test_workers_have_even_shares(
    batches: list[tuple[Indices, Rows]], workers: int
) -> None:
    slowest, mean = 0, 0.0
    for lengths, rows in batches:
        parts = split_batch(rows, lengths[rows], 4000, workers)
        assert [row for part in parts for row in part.rows] == list(rows)
        assert all(part.size <= 4000 for part in parts)
        sizes = []  # padded tokens of both sides
        for part in parts:
            longest = lengths[part.rows].max(0)  # of each side
            sizes.append(len(part.rows) * int(longest.sum()))
        slowest += max(sum(sizes[rank::workers]) for rank in range(workers))
        mean += sum(sizes) / workers
    assert slowest <= 1.05 * mean


def test_fewer_pairs_than_workers_are_a_micro_batch_each() -> None:
    parts = split_batch(np.arange(3), np.full((3, 2), 5), None, 8)
    assert [len(one.rows) for one in parts] == [1, 1, 1]


@pytest.mark.parametrize(
    ("device", "expected"), [("cpu", [8] * 10), ("cuda", [2, 24, 24, 24, 6])]
)
def test_buckets_are_as_large_as_the_backend_likes(
    device: str, expected: list[int]
) -> None:
    with FakeTensorMode():
        parameters = [
            nn.Parameter(torch.empty(512, 1024, device=device)) for _ in range(40)
        ]
        buckets = Gradients(parameters, Workers(0, 8))._buckets
    assert [bucket.flat.nbytes >> 20 for bucket in buckets] == expected


def test_torchrun_is_told_the_number_of_workers_and_to_stay_on_this_machine() -> None:
    options = torchrun_options(1, 2, Path("folder"))
    assert {"--nnodes=1", "--nproc-per-node=2", "--rdzv-conf=store_type=file"} <= {
        *options
    }


def test_a_node_joins_the_others_at_a_store_that_none_of_them_holds() -> None:
    options = torchrun_options(2, 4, "first:29")
    assert {"--nnodes=2", "--nproc-per-node=4", "--rdzv-endpoint=first:29"} <= {
        *options
    }
    assert any("is_host=0" in option for option in options)


def test_workers_on_gpus_that_cuda_cannot_use_are_refused(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    job = tiny.job(task, tmp_path / "model.safetensors", device="auto")
    for counted in (0, 2):  # by CUDA, and by the driver's own library
        monkeypatch.setattr(torch.cuda, "device_count", lambda counted=counted: counted)
        with pytest.raises(
            UserError, match=r"device auto for CUDA_VISIBLE_DEVICES=0,1: torch can"
        ):
            launch(job, 1, 2, ["train", "folder"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    for name, value in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        UserError, match="device auto for 8 workers: torch can use no GPU"
    ):
        launch(job, 1, 1, [])  # torchrun by hand


def test_fewer_gpus_than_workers_are_refused_before_anything_starts(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    job = tiny.job(task, tmp_path / "model.safetensors", device="auto")
    said = r"4 workers are asked for.* only 2 GPUs were granted .*DEVICES=0,1\): set gpus to 2, or"
    for nodes in (1, 2):
        monkeypatch.setenv(MEETING, "first:29")
        with pytest.raises(UserError, match=said):
            launch(job, nodes, 4, [])


def test_of_a_whole_nodes_gpus_as_many_are_used_as_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    check_grant(2)
    assert capsys.readouterr().err == "", "on a workstation"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    check_grant(4)
    assert capsys.readouterr().err == ""
    check_grant(2)
    assert (
        "convs2s: 4 GPUs were granted on this node (CUDA_V" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("job", "srun", "says"),
    [(None, "/bin/srun", "this is not a Slurm job"), ("1", None, "srun is missing")],
)
def test_several_nodes_are_refused_outside_of_a_job(
    task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    job: str | None,
    srun: str | None,
    says: str,
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job is not None:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setattr(shutil, "which", lambda _: srun)
    with pytest.raises(UserError, match=f"2 nodes are asked for, but {says}"):
        launch(tiny.job(task, tmp_path / "model.safetensors"), 2, 1, [])


SRUN = """\
#!/bin/sh
echo "$CONVS2S_MEETING $*" > {said}
trap 'exit {code}' USR1
sleep 0.5
kill -TERM $PPID
for second in 1 2 3 4 5 6 7 8 9 10; do sleep 1; done
"""


def test_a_signal_to_a_job_of_several_nodes_reaches_them_and_keeps_their_exit_code(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    srun = tmp_path / "srun"
    srun.write_text(SRUN.format(said=tmp_path / "said", code=UnfinishedError.exit_code))
    srun.chmod(0o755)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(UnfinishedError, match="the nodes stopped before the end"):
        launch(
            tiny.job(task, tmp_path / "model.safetensors"), 2, 1, ["train", "folder"]
        )
    meeting, *options = (tmp_path / "said").read_text().split()
    assert int(meeting.rpartition(":")[2]) > 0
    assert {"--nodes=2", "--ntasks-per-node=1"} <= {*options}
    assert options[-3:] == ["convs2s", "train", "folder"]


def test_workers_have_time_to_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a variable that every torch takes: its option is of torch 2.12."""
    asked: list[Any] = []
    monkeypatch.setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "1")  # restored at the end
    monkeypatch.setattr(run, "run", asked.append)
    torchrun(torchrun_options(1, 2, tmp_path), ["train"])
    config, _, _ = run.config_from_args(asked[0])
    assert config.shutdown_timeout == SHUTDOWN_SECONDS
    assert asked[0].shutdown_timeout is None


def test_a_trainer_compares_its_network_with_the_other_workers(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other worker, the first one, always has the network of seed 1."""
    networks: list[int] = []

    def from_first(_: Workers, checksum: int) -> int:
        networks.append(checksum)
        return networks[0]

    monkeypatch.setattr(Workers, "from_first", from_first)
    monkeypatch.setattr(Workers, "totals", lambda _, values: list(values))
    for _ in range(2):
        tiny.trainer(task, tmp_path, workers=Workers(1, 2))
    with pytest.raises(UserError, match="worker 1: the workers' parameters differ"):
        tiny.trainer(task, tmp_path, seed=2, workers=Workers(1, 2))
