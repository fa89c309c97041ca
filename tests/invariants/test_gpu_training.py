"""On a CUDA device the network, its gradients and its training are those of the CPU."""

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from convs2s.decoding.search import beam_search
from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.recorded_ensemble import RecordedEnsemble
from convs2s.training.run import train
from convs2s.training.schedule import Moment
from convs2s.training.workers import Gradients, Workers
from gpu_golden import golden_figures
from tests.support import networks, tiny
from tests.support.interrupted import train_until
from tests.support.updates import make_update

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="this machine has no CUDA device"
    ),
]


@pytest.fixture
def exact_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Normalize weights by the whole square root, as CPUs and compiled networks do.

    Torch's kernel on GPUs takes a float's, also of doubles (sqrtf, in ATen's WeightNorm.cu).
    """

    def normalized(v: torch.Tensor, g: torch.Tensor, _: int) -> torch.Tensor:
        norm: torch.Tensor = torch.linalg.vector_norm(v, dim=1, keepdim=True)
        return v * (g / norm)

    monkeypatch.setattr(torch, "_weight_norm", normalized)


@pytest.mark.usefixtures("exact_roots")
def test_losses_and_gradients_are_the_cpus(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    found = []
    for device in ("cpu", "cuda"):
        one = tiny.trainer(task, tmp_path / device, device=device)
        report = make_update(one.updater, one.train, one.plan(1)[0], Moment(1, 0, 0.25))
        found.append((report.loss, report.norm, one.network.cpu()))
    (loss, norm, ours), (gpu_loss, gpu_norm, theirs) = found
    assert gpu_loss == pytest.approx(loss, rel=1e-9)
    assert gpu_norm == pytest.approx(norm, rel=1e-9)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=1e-9)


@contextmanager
def waits(mode: Literal["error", "warn"]) -> Iterator[None]:
    """Have CUDA's own record of what this process waits for raise an error, or a warning."""
    torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_golden_vectors() -> None:
    assert golden_figures("cuda")["holds"]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["nesterov", "adam"])
def test_an_update_waits_for_nothing(
    task: Path, tmp_path: Path, optimizer: str, precision: str
) -> None:
    one = tiny.trainer(
        task,
        tmp_path,
        device="cuda",
        dropout=0.2,
        optimizer=optimizer,
        precision=precision,
    )
    one.network.float()
    for number in range(3):
        loaded = one.updater.load(one.train, np.arange(16))
        assert loaded.micro_batches[0][1].source.is_pinned()
        with waits("error" if number else "warn"):  # the first one sets up
            started = one.updater.start(loaded, Moment(1, number, 0.1))
    assert np.isfinite(one.updater.read([started])[0].loss)


def test_a_search_waits_once_a_step() -> None:
    source = networks.batch(6, 3)
    ensemble = Ensemble([networks.network().cuda()])
    options = networks.options(beam=3)
    beam_search(ensemble, source, options)
    with warnings.catch_warnings(record=True) as seen, waits("warn"):
        warnings.simplefilter("always")
        beam_search(ensemble, source, options)
    assert len(seen) <= 6 + 5 + 1 + 3  # steps at most, and the encoder's


def test_recorded_steps_are_the_steps() -> None:
    made = [networks.network(seed).cuda() for seed in (1, 2)]
    recorded = RecordedEnsemble(made)
    for beam, lengths in itertools.product((1, 3), ((9, 2, 5), (6, 6), (20, 3))):
        source, options = networks.batch(*lengths), networks.options(beam=beam)
        found, expected = (
            beam_search(one, source, options) for one in (recorded, Ensemble(made))
        )
        for ours, theirs in zip(found, expected, strict=True):
            assert [one.tokens for one in ours] == [one.tokens for one in theirs]
            scores = [one.score for one in theirs]
            assert [one.score for one in ours] == pytest.approx(scores, abs=1e-9)


def test_gradients_are_summed_by_nccl_in_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("convs2s.training.workers.BUCKET", 100)
    torch.distributed.init_process_group(
        "cpu:gloo,cuda:nccl",
        init_method=f"file://{tmp_path}/meeting",
        rank=0,
        world_size=1,
    )
    try:
        network = networks.network().eval().cuda()
        source, previous = networks.batch(6, 3).cuda(), networks.batch(4, 5).cuda()
        found = []
        # It behaves as one of two, the only one that there is.
        for workers in (Workers(), Workers(0, 2)):
            gradients = Gradients(list(network.parameters()), workers)
            gradients.clear()
            gradients.expect_last()
            network(source, previous)[0].square().sum().backward()
            gradients.finish()
            assert not any(workers.flags([False]))
            found.append(
                [p.grad.clone() for p in network.parameters() if p.grad is not None]
            )
        for mine, other in zip(*found, strict=True):
            torch.testing.assert_close(mine, other)
    finally:
        torch.distributed.destroy_process_group()


def test_an_lstm_decodes_and_learns_in_bf16() -> None:
    model, source = networks.lstm().float().cuda(), networks.batch(6, 3)
    found = beam_search(
        Ensemble([model], precision="bf16"), source, networks.options(beam=3)
    )
    assert all(found)
    model.train()  # cuDNN has no backward pass of a network that is evaluated
    with torch.autocast("cuda", torch.bfloat16):
        features = model.features(source.cuda(), networks.batch(4, 5).cuda())
    assert features.dtype == torch.bfloat16
    features.float().sum().backward()
    assert all(p.grad is not None for p in model.decoder.layers.parameters())


def test_fp32_logits_are_near_the_cpus() -> None:
    torch.manual_seed(1)
    network = build_network(tiny.settings().architecture, 15, 15).eval()
    source, previous = (
        torch.tensor([[4, 5, 6, 1], [7, 1, 0, 0]]),
        torch.tensor([[1, 5], [1, 6]]),
    )
    with torch.inference_mode():
        expected = network(source, previous)[0]
        found = network.cuda()(source.cuda(), previous.cuda())[0].cpu()
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


@pytest.mark.usefixtures("exact_roots")
def test_a_compiled_network_is_the_network(task: Path, tmp_path: Path) -> None:
    found = []
    for compiled in (False, True):
        one = tiny.trainer(
            task, tmp_path / str(compiled), device="cuda", compile=compiled
        )
        report = make_update(one.updater, one.train, one.plan(1)[0], Moment(1, 0, 0.25))
        found.append((report.loss, one.network))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-9)
    for mine, other in zip(
        *(network.parameters() for _, network in found), strict=True
    ):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("compiled", [False, True])
def test_bf16_learns(task: Path, tmp_path: Path, compiled: bool) -> None:
    settings = tiny.settings(
        precision="bf16",
        compile=compiled,
        optimizer="adam",
        learning_rate=1e-2,
        maximum_epochs=10,
    )
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, settings, device="cuda"))
    perplexity = load_model(model)[1].training["validation_perplexity"]
    assert isinstance(perplexity, float)
    assert perplexity < 10


def test_an_interrupted_training_ends_as_an_undisturbed_one(
    task: Path, tmp_path: Path
) -> None:
    models = [tmp_path / name / "model.safetensors" for name in ("a", "b")]
    jobs = [tiny.job(task, model, device="cuda") for model in models]
    train(jobs[0])
    train_until(jobs[1], epoch=1)
    train(jobs[1])
    undisturbed, interrupted = (load_model(model)[0] for model in models)
    for mine, other in zip(
        undisturbed.parameters(), interrupted.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=1e-5)
