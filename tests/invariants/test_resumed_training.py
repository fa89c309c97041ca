"""Training: the schedule, states, locks, and the same bytes whatever happens on the way."""

import fcntl
import itertools
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
import torch

from convs2s.config.identity import training_settings
from convs2s.config.model import Recipe
from convs2s.data.store import TokenStore
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from convs2s.model_file import load_model
from convs2s.training import trainer
from convs2s.training.data import TrainingData
from convs2s.training.history import read_history
from convs2s.training.identity import TrainingJob
from convs2s.training.run import train
from convs2s.training.schedule import Moment, Schedule, set_learning_rate
from convs2s.training.state_folder import StateFolder
from convs2s.training.trainer import Trainer
from convs2s.training.update import Updater
from tests.support import tiny
from tests.support.interrupted import train_until
from tests.support.limits import files_of_at_most, refuse_lock
from tests.support.together import forking
from tests.support.updates import make_update


def job(task: Path, output: Path, **training: Any) -> TrainingJob:
    return tiny.job(task, output, tiny.settings(**training))


def recipe(**training: Any) -> Recipe:
    return tiny.settings(**training).training


# ---- the learning rate ----


def rates(losses: list[float], one: Recipe) -> tuple[list[float], Schedule]:
    schedule, seen = Schedule(one.learning_rate), []
    for epoch, loss in enumerate(losses, start=1):
        schedule = schedule.after_epoch(epoch, loss, one)
        seen.append(schedule.learning_rate)
        if schedule.stop_reason:
            break
    return seen, schedule


def test_once_triggered_every_epoch_divides_the_rate() -> None:
    seen, schedule = rates([5, 4, 4.1, 3, 2, 1, 0.5], recipe(maximum_epochs=None))
    assert seen == pytest.approx([0.25, 0.25, 0.025, 0.0025, 0.00025, 0.000025])
    assert schedule.stop_reason is not None
    assert "fell below 0.0001" in schedule.stop_reason
    assert schedule.best_epoch == 6


def test_a_worse_epoch_divides_and_so_does_every_later_one() -> None:
    after_a_rise, _ = rates([3, 4, 3.5, 3.2], recipe(maximum_epochs=None))
    assert after_a_rise == pytest.approx([0.25, 0.025, 0.0025, 0.00025])
    after_two, _ = rates([3, 2, 2.5], recipe(maximum_epochs=None))
    assert after_two == pytest.approx([0.25, 0.25, 0.025])


def test_a_plateau_that_begins_below_its_minimum_ends_once_validation_is_worse() -> (
    None
):
    one = recipe(optimizer="adam", learning_rate=5e-5, maximum_epochs=None)
    seen, schedule = rates([5, 4, 3], one)
    assert (seen, schedule.stop_reason) == ([5e-5] * 3, None)
    seen, schedule = rates([5, 4, 4.5, 3], one)
    assert seen == pytest.approx([5e-5, 5e-5, 5e-6])
    assert "fell below 0.0001" in str(schedule.stop_reason)


def test_steps_come_at_fixed_times() -> None:
    # Sutskever et al. 2014: halved every half epoch after the fifth, 7.5 epochs.
    steps = {"kind": "step", "hold": 5, "every": 0.5, "divide_by": 2}
    one = recipe(
        optimizer="sgd", learning_rate=0.64, schedule=steps, maximum_epochs=7.5
    )
    moments = [0.0, 4.99, 5.01, 5.49, 5.51, 6.01, 7.49]
    assert [
        Schedule(0.64).learning_rate_at(moment, one) for moment in moments
    ] == pytest.approx([0.64, 0.64, 0.32, 0.32, 0.16, 0.08, 0.02])
    assert Schedule(0.64).after_epoch(7, 1.0, one).stop_reason is None
    assert "maximum of 7.5 epochs" in str(
        Schedule(0.64).after_epoch(8, 1.0, one).stop_reason
    )


def test_a_rounding_error_delays_no_step() -> None:
    assert (5.3 - 5.0) / 0.1 < 3
    steps = {"kind": "step", "hold": 5, "every": 0.1, "divide_by": 2}
    one = recipe(learning_rate=0.8, schedule=steps)
    assert Schedule(0.8).learning_rate_at(5.3, one) == 0.8 / 2**4


def test_a_step_schedule_ends_at_its_minimum() -> None:
    # The PyTorch successor's recipe: 0.5, from epoch 50 on divided after each epoch.
    steps = {"kind": "step", "hold": 49, "every": 1, "divide_by": 10, "minimum": 1e-4}
    one = recipe(learning_rate=0.5, schedule=steps, maximum_epochs=None)
    ends = [
        Schedule(0.5).after_epoch(epoch, 1.0, one).stop_reason for epoch in (50, 51, 52)
    ]
    assert ends == [None, None, "the learning rate fell below 0.0001"]


def test_a_cosine_rises_and_falls_to_zero() -> None:
    cosine = {"kind": "cosine", "warmup": 1.0}
    one = recipe(learning_rate=1.0, schedule=cosine, maximum_epochs=5)
    moments = (0.5, 1.0, 2.0, 3.0, 5.0)
    rates = [Schedule(1.0).learning_rate_at(moment, one) for moment in moments]
    assert rates == pytest.approx([0.5, 1.0, (1 + math.sqrt(0.5)) / 2, 0.5, 0.0])
    without = recipe(
        learning_rate=1.0, schedule={"kind": "cosine", "warmup": 0}, maximum_epochs=5
    )
    assert Schedule(1.0).learning_rate_at(0.0, without) == 1.0


def test_a_cosine_may_end_within_an_epoch_by_an_update_of_rate_0(
    task: Path, tmp_path: Path
) -> None:
    one = tiny.trainer(task, tmp_path, schedule={"kind": "cosine"}, maximum_epochs=1.04)
    one.run()
    assert (one.state.updates, one.state.learning_rate) == (11, 0.0)
    assert all(tensor.isfinite().all() for tensor in one.network.parameters())


def test_the_last_epoch_is_known_where_validation_does_not_decide_it() -> None:
    cosine = recipe(schedule={"kind": "cosine"}, maximum_epochs=5)
    assert Schedule(0.25).last_epoch(1, cosine) == 5
    plateau, bounded = recipe(maximum_epochs=None), recipe(maximum_epochs=2.5)
    assert Schedule(0.25).last_epoch(1, plateau) is None
    assert Schedule(0.25).last_epoch(1, bounded) == 2.5
    # 0.25, divided by 10 after each epoch, is below 0.0001 after four.
    annealing = Schedule(0.25, annealing=True)
    assert annealing.last_epoch(3, plateau) == 6
    assert annealing.last_epoch(2, bounded) == 2.5


def test_maximum_epochs_stops_with_a_reason() -> None:
    _, schedule = rates([3, 2, 1], recipe(maximum_epochs=2))
    assert schedule.stop_reason == "the recipe's maximum of 2 epochs is reached"


# ---- updates ----


def test_a_split_batch_makes_the_same_update(task: Path, tmp_path: Path) -> None:
    whole = tiny.trainer(
        task, tmp_path, batch={"sentences": 32, "micro_batch_tokens": None}
    )
    split = tiny.trainer(
        task, tmp_path, batch={"sentences": 32, "micro_batch_tokens": 40}
    )
    for number, rows in enumerate(whole.plan(1)):
        reports = [
            make_update(each.updater, each.train, rows, Moment(1, number, 0.25))
            for each in (whole, split)
        ]
        assert asdict(reports[0]) == pytest.approx(asdict(reports[1]))
    for mine, other in zip(
        whole.network.parameters(), split.network.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=0)


@pytest.mark.slow
def test_a_compiled_network_makes_the_same_updates(task: Path, tmp_path: Path) -> None:
    eager, compiled = (
        tiny.trainer(task, tmp_path, dropout=0.2, compile=compile)
        for compile in (False, True)
    )
    for number, rows in enumerate(eager.plan(1)):
        for each in (eager, compiled):
            make_update(each.updater, each.train, rows, Moment(1, number, 0.25))
    for mine, other in zip(
        eager.network.parameters(), compiled.network.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=0)


def test_a_torch_is_asked_for_no_option_of_its_compiler_that_it_lacks(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(
        torch, "compile", lambda _, **given: asked.append(given["options"])
    )
    monkeypatch.setattr(
        torch._inductor, "list_options", lambda: ["combo_kernels", "debug"]
    )
    tiny.trainer(task, tmp_path).updater._compile(True)
    assert asked == [{"combo_kernels": True}] * 2


def test_separate_micro_batches_are_updates_of_their_own(
    task: Path, tmp_path: Path
) -> None:
    limits = {"sentences": 32, "micro_batch_tokens": 40}
    joint = tiny.trainer(task, tmp_path, batch=limits).plan(1)
    separate = tiny.trainer(task, tmp_path, batch={**limits, "split": "separate"}).plan(
        1
    )
    assert len(separate) > len(joint)
    assert sorted(row for rows in separate for row in rows) == list(range(160))


@pytest.mark.parametrize("rate", [0.125, 0.5], ids=["falls", "rises"])
def test_velocity_is_kept_whichever_way_the_rate_goes(rate: float) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], 0.25, 0.9, nesterov=True)
    weight.sum().backward()
    optimizer.step()
    before = optimizer.state[weight]["momentum_buffer"].clone()
    set_learning_rate(optimizer, rate, "keep")
    after = optimizer.state[weight]["momentum_buffer"]
    # The step that it stands for.
    torch.testing.assert_close(rate * after, 0.25 * before)
    assert optimizer.param_groups[0]["lr"] == rate


def test_a_diverging_training_says_so(task: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"training diverged in epoch 1 at update \d+: .* lower the learning rate",
    ):
        train(job(task, tmp_path / "model.safetensors", learning_rate=1e30, clip=1e30))


# ---- states ----


def test_the_same_seed_gives_the_same_bytes(task: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name / "model.safetensors" for name in ("a", "b")]
    started = time.monotonic()
    for path in paths:
        train(job(task, path))
    elapsed = time.monotonic() - started
    assert sha256(paths[0]) == sha256(paths[1])
    rows = [json.loads(line) for line in (tmp_path / "a" / "history.jsonl").open()]
    assert [row["epoch"] for row in rows[:-1]] == [1, 2, 3]
    tokens = int(TrainingData.read(task).train.lengths("target").sum())
    assert [row["tokens"] for row in rows[:-1]] == [tokens] * 3
    assert sum(tokens / row["tokens_per_second"] for row in rows[:-1]) < elapsed
    assert rows[-1] == {"stop": "the recipe's maximum of 3 epochs is reached"}
    _, description = load_model(paths[0])
    assert description.training["validation_perplexity"] == min(
        row["valid_perplexity"] for row in rows[:-1]
    )


@pytest.mark.parametrize(("minutes", "during_epochs"), [(60.0, 2), (1e-9, 20)])
def test_states_are_written_as_often_as_is_asked(
    task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    minutes: float,
    during_epochs: int,
) -> None:
    saves, save = [0], Trainer._save

    def counted(self: Trainer) -> None:
        saves[0] += self.state.batch > 0
        save(self)

    monkeypatch.setattr(Trainer, "_save", counted)
    changes = {"checkpoint_minutes": minutes, "maximum_epochs": 2}
    train(job(task, tmp_path / "model.safetensors", **changes))
    assert saves[0] == during_epochs


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the trainer's clock takes a second; an update looks twice."""
    clock = map(float, itertools.count())
    monkeypatch.setattr(trainer, "time", SimpleNamespace(monotonic=lambda: next(clock)))


@pytest.mark.usefixtures("ticking")
def test_states_are_as_far_apart_as_is_asked(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, save = list[int](), Trainer._save

    def noted(self: Trainer) -> None:
        batches.append(self.state.batch)
        save(self)

    monkeypatch.setattr(Trainer, "_save", noted)
    changes = {"checkpoint_minutes": 5 / 60, "maximum_epochs": 1}
    train(job(task, tmp_path / "model.safetensors", **changes))
    # The fourth update looks at the seventh second; the last one of an epoch is saved in any case.
    assert batches == [4, 8, 10, 0]


@pytest.mark.usefixtures("ticking")
def test_the_rate_of_an_epoch_counts_the_tries_before(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"checkpoint_minutes": 1e-9, "maximum_epochs": 1}
    jobs = [
        job(task, tmp_path / name / "model.safetensors", **settings)
        for name in ("a", "b")
    ]
    train(jobs[0])
    updates = itertools.count(1)
    start = Updater.start

    def start_until_the_eighth(*given: Any) -> Any:
        if next(updates) == 8:
            raise KeyboardInterrupt
        return start(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Updater, "start", start_until_the_eighth)
        with pytest.raises(KeyboardInterrupt):
            train(jobs[1])
    train(jobs[1])
    whole, resumed = (
        read_history(one.output.with_name("history.jsonl")).epochs for one in jobs
    )
    assert resumed[0].tokens_per_second == pytest.approx(
        whole[0].tokens_per_second, rel=0.15
    )


def test_the_updates_of_an_epoch_are_safe_while_it_is_validated(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job(task, tmp_path / name / "model.safetensors") for name in ("a", "b")]
    train(jobs[0])

    def interrupt(*_: object, **__: object) -> float:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Updater, "validate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(jobs[1])
    made: list[int] = []
    start = Updater.start

    def counted(*given: Any) -> Any:
        made.append(1)
        return start(*given)

    monkeypatch.setattr(Updater, "start", counted)
    train(jobs[1])
    assert len(made) == 20  # those of the other two epochs
    assert sha256(jobs[0].output) == sha256(jobs[1].output)


def test_killed_five_times_gives_the_same_bytes(task: Path, tmp_path: Path) -> None:
    undisturbed, killed = (tmp_path / name / "model.safetensors" for name in ("a", "b"))
    train(job(task, undisturbed, maximum_epochs=12))
    # A state after each update, so that a kill comes at every kind of moment.
    often = job(task, killed, maximum_epochs=12, checkpoint_minutes=1e-9)
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(training_settings(tiny.settings(maximum_epochs=12))))
    command = [
        sys.executable,
        "-m",
        "convs2s",
        "train",
        str(task),
        "--settings",
        str(settings),
    ]
    command += ["--output", str(killed), "--threads", "1", "--device", "cpu"]
    moments = random.Random(7)
    for _ in range(5):
        states = list((killed.parent / "state").glob("*/last.safetensors"))
        before = states[0].stat().st_mtime_ns if states else 0
        process = forking().Process(target=train, args=(often,))
        process.start()
        # Wait until it has gone on from where the last one was.
        while process.exitcode is None:
            states = list((killed.parent / "state").glob("*/last.safetensors"))
            if states and states[0].stat().st_mtime_ns > before:
                time.sleep(moments.uniform(0, 0.03))
                process.kill()
                break
            time.sleep(0.01)
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert not killed.exists()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "resuming in epoch" in done.stderr
    assert re.search(r"process \d+ on \S+: 1 worker on the CPU, fp32\n", done.stderr)
    assert sha256(killed) == sha256(undisturbed)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_every_optimizer_goes_on_where_it_was(
    task: Path, tmp_path: Path, optimizer: str
) -> None:
    # A last epoch of which only a half is trained, after a state in the middle of training.
    cosine = {"kind": "cosine", "warmup": 0.5}
    changes: dict[str, Any] = {
        "optimizer": optimizer,
        "schedule": cosine,
        "maximum_epochs": 1.5,
    }
    train(job(task, tmp_path / "a" / "model.safetensors", **changes))
    parts = job(task, tmp_path / "b" / "model.safetensors", **changes)
    train_until(parts, epoch=1)
    train(parts)
    assert sha256(tmp_path / "a" / "model.safetensors") == sha256(parts.output)
    rows = [json.loads(line) for line in (tmp_path / "b" / "history.jsonl").open()]
    assert [row["updates"] for row in rows[:-1]] == [10, 15]


def test_the_mean_of_the_last_epochs(task: Path, tmp_path: Path) -> None:
    one = job(task, tmp_path / "model.safetensors", average=2)
    train(one)
    (folder,) = (path.parent for path in tmp_path.glob("state/*/last.safetensors"))
    kept = sorted(folder.glob("epoch*.safetensors"))
    assert [path.name for path in kept] == ["epoch2.safetensors", "epoch3.safetensors"]
    states = [load_tensors(path)[0] for path in kept]
    network, description = load_model(one.output)
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(tensor, (states[0][name] + states[1][name]) / 2)
    loss = Updater(network, recipe(), seed=1, device="cpu").validate(
        TrainingData.read(task).valid
    )
    assert description.training["validation_perplexity"] == math.exp(round(loss, 6))
    short = job(
        task, tmp_path / "short" / "model.safetensors", average=2, maximum_epochs=1
    )
    train(short)  # its one epoch is all that there is to average
    (only,) = tmp_path.glob("short/state/*/epoch1.safetensors")
    mean = load_model(short.output)[0].state_dict()
    assert all(
        torch.equal(mean[name], tensor)
        for name, tensor in load_tensors(only)[0].items()
    )


def test_a_state_of_another_configuration_is_not_loaded(
    task: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.safetensors"
    train(job(task, path, maximum_epochs=1))
    capfd.readouterr()
    train(job(task, path, maximum_epochs=1, clip=0.2))
    output = capfd.readouterr().err
    assert (
        "is a state of another training (training.clip is 0.1, not 0.2): not loaded"
        in output
    )
    assert "resuming" not in output


def test_a_full_disk_does_not_hide_how_a_training_ended(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state", {})

    def end() -> NoReturn:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        raise UnfinishedError("saved in epoch 3: rerun the same command to resume")

    with (
        files_of_at_most(2**40),
        pytest.raises(UnfinishedError, match="saved"),
        folder.locked(),
    ):
        end()


def test_a_training_that_finds_a_full_disk_is_refused_in_one_line(
    tmp_path: Path,
) -> None:
    folder = StateFolder(tmp_path / "state", {})
    with (
        files_of_at_most(0),
        pytest.raises(UserError, match=rf"^{tmp_path}/state: cannot be written: "),
        folder.locked(),
    ):
        pass


def test_the_next_owner_of_a_lock_says_who_was_killed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = StateFolder(tmp_path / "state", {})
    with folder.locked():
        pass
    assert capfd.readouterr().err == ""
    with pytest.raises(UserError), folder.locked():
        raise UserError("a fault that was said")
    owner_named = f"before: process {os.getpid()} on {os.uname().nodename}"
    with folder.locked():
        assert capfd.readouterr().err == f"{owner_named}: a fault that was said\n"
        owner = (tmp_path / "state/lock").read_bytes()
    (tmp_path / "state/lock").write_bytes(owner)  # as a kill leaves it
    with folder.locked():
        assert (tmp_path / "state/lock").read_bytes() == owner
    assert capfd.readouterr().err.startswith(
        f"{owner_named} has ended without a word: killed"
    )
    # Of another locale.
    (tmp_path / "state/lock").write_bytes(owner[:-1] + b": /data/Jos\xe9\n")
    with folder.locked():
        assert (
            capfd.readouterr().err
            == f"{owner_named}: /data/Jos\N{REPLACEMENT CHARACTER}\n"
        )


def test_no_training_where_none_can_be_kept_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", refuse_lock)
    with (
        pytest.raises(
            UserError, match=r"cannot be locked \(Function not implemented\), and two"
        ),
        StateFolder(tmp_path / "state", {}).locked(),
    ):
        pass


def test_of_two_trainings_in_one_folder_the_second_is_refused(
    task: Path, tmp_path: Path
) -> None:
    said = rf"another training is writing here \(process {os.getpid()} on "
    with (
        StateFolder(tmp_path / "state", {}).locked(),
        pytest.raises(UserError, match=said),
    ):
        train(job(task, tmp_path / "model.safetensors"))


def test_a_pair_longer_than_the_positions_is_refused(
    task: Path, tmp_path: Path
) -> None:
    settings = tiny.settings({"positions": {"maximum": 8}})
    one = tiny.job(task, tmp_path / "model.safetensors", settings)
    with pytest.raises(
        UserError, match=r"train\.arrow: the source of pair \d+ has 9 tokens"
    ):
        train(one)


def test_a_store_without_pairs_is_refused(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenStore, "__len__", lambda _: 0)
    with pytest.raises(
        UserError, match=r"train\.arrow: has no pairs; corpus/counts\.txt and "
    ):
        train(job(task, tmp_path / "model.safetensors"))


def test_an_unprepared_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train\.json: no such file: run `snakemake /"):
        train(job(tmp_path, tmp_path / "model.safetensors"))
