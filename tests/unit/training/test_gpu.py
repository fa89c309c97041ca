"""On a CUDA device the network, its gradients and its training are those of the CPU."""

from pathlib import Path

import pytest
import torch

from convs2s.model_file import load_model
from convs2s.models.build import build_network
from convs2s.training.run import train
from convs2s.training.trainer import Trainer
from tests.support import tiny
from tests.unit.training.test_training import stopping_after_the_first

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device"),
]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.prepare(tmp_path_factory.mktemp("task"))


def test_losses_and_gradients_are_the_cpus(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    found = []
    for device in ("cpu", "cuda"):
        one = tiny.trainer(task, tmp_path / device, device=device)
        report = one.updater.update(one.train, one.plan(1)[0], 1, 0, 0.25)
        found.append((report.loss, report.norm, one.network.cpu()))
    (loss, norm, ours), (gpu_loss, gpu_norm, theirs) = found
    assert gpu_loss == pytest.approx(loss, rel=1e-9)
    assert gpu_norm == pytest.approx(norm, rel=1e-9)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=1e-9)


def test_fp32_logits_are_near_the_cpus() -> None:
    torch.manual_seed(1)
    network = build_network(tiny.settings().architecture, 15, 15).eval()
    source, previous = torch.tensor([[4, 5, 6, 1], [7, 1, 0, 0]]), torch.tensor([[1, 5], [1, 6]])
    with torch.inference_mode():
        expected = network(source, previous)[0]
        found = network.cuda()(source.cuda(), previous.cuda())[0].cpu()
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("compiled", [False, True])
def test_bf16_learns(task: Path, tmp_path: Path, compiled: bool) -> None:
    settings = tiny.settings(
        precision="bf16", compile=compiled, optimizer="adam", learning_rate=1e-2, maximum_epochs=10
    )
    model = tmp_path / "model.safetensors"
    train(tiny.job(task, model, settings, device="cuda"))
    perplexity = load_model(model)[1].training["validation_perplexity"]
    assert isinstance(perplexity, float)
    assert perplexity < 10


def test_an_interrupted_training_ends_as_an_undisturbed_one(task: Path, tmp_path: Path) -> None:
    models = [tmp_path / name / "model.safetensors" for name in ("a", "b")]
    jobs = [tiny.job(task, model, device="cuda") for model in models]
    train(jobs[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_finish_epoch", stopping_after_the_first(Trainer._finish_epoch))
        with pytest.raises(KeyboardInterrupt):
            train(jobs[1])
    train(jobs[1])
    undisturbed, interrupted = (load_model(model)[0] for model in models)
    for mine, other in zip(undisturbed.parameters(), interrupted.parameters(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-6, rtol=1e-5)
