"""On a CUDA device the network, its gradients and its training are those of the CPU."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from convs2s.decoding.search import beam_search
from convs2s.model_file import load_model
from convs2s.models.ensemble import Ensemble
from convs2s.models.recorded_ensemble import RecordedEnsemble
from convs2s.training.run import train
from convs2s.training.schedule import Moment
from convs2s.training.workers import Gradients, Workers
from tests.invariants.gpu import Again
from tests.support import networks, tiny
from tests.support.networks import assert_alike
from tests.support.tiny import make_update, train_until

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="this machine has no CUDA device"
    ),
]


@pytest.mark.parametrize("compiled", [False, True])
def test_losses_and_gradients_are_the_cpus(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    # Torch's kernel on GPUs takes a float's root, also of doubles (sqrtf, in ATen's
    # WeightNorm.cu); CPUs and compiled networks take the whole one.
    def normalized(v: torch.Tensor, g: torch.Tensor, _: int) -> torch.Tensor:
        norm: torch.Tensor = torch.linalg.vector_norm(v, dim=1, keepdim=True)
        return v * (g / norm)

    monkeypatch.setattr(torch, "_weight_norm", normalized)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    found = []
    for device in ("cpu", "cuda"):
        is_compiled = compiled and device == "cuda"
        one = tiny.trainer(task, tmp_path / device, device=device, compile=is_compiled)
        report = make_update(one.updater, one.train, one.plan(1)[0], Moment(1, 0, 0.25))
        found.append((report.loss, report.norm, one.network.cpu()))
    (*figures, ours), (*gpu_figures, theirs) = found
    assert gpu_figures == pytest.approx(figures, rel=1e-9)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(mine.grad, other.grad, atol=1e-9, rtol=1e-7)
        assert_close(mine, other, atol=1e-9, rtol=1e-7)


@contextmanager
def waits(mode: Literal["error", "warn"]) -> Iterator[None]:
    """Have CUDA's own record of what this process waits for raise an error, or a warning."""
    torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["nesterov", "adam"])
def test_an_update_waits_for_nothing(
    task: Path, tmp_path: Path, optimizer: str, precision: str
) -> None:
    recipe: dict[str, Any] = {"optimizer": optimizer, "precision": precision}
    one = tiny.trainer(task, tmp_path, device="cuda", dropout=0.2, **recipe)
    one.network.float()
    for number in range(4):
        loaded = one.updater.load(one.train, np.arange(16))
        assert loaded.micro_batches[0][1].source.is_pinned()
        # The first one sets up, and the second one is recorded.
        with waits("error" if number > 1 else "warn"):
            started = one.updater.start(loaded, Moment(1, number, 0.1))
    assert np.isfinite(one.updater.read([started])[0].loss)


@pytest.mark.parametrize("compiled", [False, True])
def test_replayed_gradients_have_the_masks_of_their_seed(
    task: Path, tmp_path: Path, compiled: bool
) -> None:
    found = []
    settings: dict[str, Any] = {"device": "cuda", "dropout": 0.2, "compile": compiled}
    for recording in (None, Again):
        one = tiny.trainer(task, tmp_path, recording=recording, **settings)
        figures = []
        for number in range(4):
            moment = Moment(1, number, 0.1)
            rows = np.arange(number, 16 + number)
            report = make_update(one.updater, one.train, rows, moment)
            figures.append((report.loss, report.norm))
        found.append(([each.detach() for each in one.network.parameters()], figures))
    assert_close(*found, atol=1e-9, rtol=1e-9)


def test_a_search_waits_once_a_step() -> None:
    ensemble = Ensemble([networks.network().cuda()])
    chosen = networks.batch(6, 3), networks.options(beam=3)
    beam_search(ensemble, *chosen)
    with warnings.catch_warnings(record=True) as seen, waits("warn"):
        warnings.simplefilter("always")
        beam_search(ensemble, *chosen)
    assert len(seen) <= 6 + 5 + 1 + 3  # steps at most, and the encoder's


@pytest.mark.parametrize("beam", [1, 3])
def test_recorded_steps_are_the_steps(beam: int) -> None:
    made = [networks.network(seed).cuda() for seed in (1, 2)]
    recorded = RecordedEnsemble(made)
    for lengths in ((9, 2, 5), (6, 6), (20, 3), (7,)):
        chosen = networks.batch(*lengths), networks.options(beam=beam)
        expected = beam_search(Ensemble(made), *chosen)
        assert_alike(beam_search(recorded, *chosen), expected)


def test_gradients_are_summed_by_nccl_in_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convs2s.training.workers.GPU_BUCKETS", (50, 100))
    meeting = f"file://{tmp_path}/meeting"
    torch.distributed.init_process_group(
        "cpu:gloo,cuda:nccl", init_method=meeting, rank=0, world_size=1
    )
    network = networks.network().eval().cuda()
    found = []
    # It behaves as one of two, the only one that there is.
    for workers in (Workers(), Workers(0, 2)):
        gradients = Gradients(list(network.parameters()), workers)
        gradients.clear()
        gradients.expect_last()
        batches = networks.batch(6, 3).cuda(), networks.batch(4, 5).cuda()
        network(*batches)[0].square().sum().backward()
        gradients.finish()
        assert not any(workers.flags([False]))
        given = [parameter.grad for parameter in network.parameters()]
        found.append([grad.clone() for grad in given if grad is not None])
    torch.distributed.destroy_process_group()
    assert_close(*found)


def test_an_lstm_decodes_and_learns_in_bf16() -> None:
    model = networks.lstm().float().cuda()
    source = networks.batch(6, 3)
    ensemble = Ensemble([model], precision="bf16")
    assert all(beam_search(ensemble, source, networks.options(beam=3)))
    model.train()  # cuDNN has no backward pass of a network that is evaluated
    with torch.autocast("cuda", torch.bfloat16):
        features = model.features(source.cuda(), networks.batch(4, 5).cuda())
    assert features.dtype == torch.bfloat16
    features.float().sum().backward()
    assert all(p.grad is not None for p in model.decoder.layers.parameters())


@pytest.mark.parametrize("compiled", [False, True])
def test_bf16_learns(task: Path, tmp_path: Path, compiled: bool) -> None:
    adam: dict[str, Any] = {"optimizer": "adam", "learning_rate": 1e-2}
    settings = tiny.settings(
        precision="bf16", compile=compiled, maximum_epochs=10, **adam
    )
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, settings, device="cuda"))
    perplexity = load_model(model)[1].training["validation_perplexity"]
    assert float(str(perplexity)) < 10


def test_an_interrupted_training_ends_as_an_undisturbed_one(
    task: Path, tmp_path: Path
) -> None:
    models = [tmp_path / name / "model.safetensors" for name in ("a", "b")]
    whole, parts = (tiny.job(task, model, device="cuda") for model in models)
    train(whole)
    train_until(parts, epoch=1)
    train(parts)
    undisturbed, interrupted = (load_model(model)[0].state_dict() for model in models)
    assert_close(interrupted, undisturbed, atol=1e-6, rtol=1e-5)
