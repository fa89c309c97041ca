"""The example of an architecture: a search reads what a training reads, and it learns."""

from pathlib import Path

import numpy as np
import pytest
import torch

from convs2s.config.architecture import parse_architecture
from convs2s.config.extensions import export_extensions
from convs2s.data.vocabulary import END, PADDING
from convs2s.errors import UserError
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network


@pytest.fixture
def network(root: Path) -> Network:
    export_extensions(["examples/transformer.py"], root)
    settings = {
        "kind": "transformer",
        "layers": 2,
        "width": 32,
        "heads": 4,
        "dropout": 0.0,
    }
    torch.manual_seed(1)
    return build_network(parse_architecture(settings), 20, 20)


def test_a_width_that_the_heads_cannot_share_is_refused(root: Path) -> None:
    export_extensions(["examples/transformer.py"], root)
    with pytest.raises(
        UserError, match=r"architecture\.heads: 256 values cannot be shared by 5"
    ):
        parse_architecture({"kind": "transformer", "width": 256, "heads": 5})


@torch.inference_mode()
def test_a_search_steps_through_what_the_network_reads_at_once(
    network: Network,
) -> None:
    source = torch.tensor(
        [[5, 6, 7, END], [9, END, PADDING, PADDING], [8, 8, END, PADDING]]
    )
    previous = torch.tensor([[END, 8, 9, 10], [END, 17, 8, 9], [END, 10, 9, 8]])
    logits, attentions = network.eval()(source, previous)
    expected, attention = logits.log_softmax(2), torch.stack(attentions).mean(0)
    state = Ensemble([network]).start(source, 2)
    both = previous.unsqueeze(1).expand(-1, 2, -1)  # each hypothesis reads the same
    for number in range(2):
        found, where = state.step(both[:, :, number])
        torch.testing.assert_close(found[:, 1], expected[:, number])
        assert where is not None
        torch.testing.assert_close(where[:, 0], attention[:, number])
    state.select(np.array([1, 0, 3, 3, 4, 5]))
    state.keep(np.array([0, 2]))
    found, _ = state.step(both[[0, 2], :, 2])
    torch.testing.assert_close(found[:, 0], expected[[0, 2], 2])
    network.double()
    alone, _ = network(source[1:2, :2], previous[1:2])  # padding changes nothing
    torch.testing.assert_close(alone.float(), logits[1:2])


def test_it_learns_to_reverse(network: Network) -> None:
    generator = torch.Generator().manual_seed(1)
    end = torch.full((64, 1), END)
    optimizer = torch.optim.Adam(network.parameters(), 0.003)
    for _ in range(100):
        words = torch.randint(5, 15, (64, 3), generator=generator)
        source, target = torch.cat([words, end], 1), torch.cat([words.flip(1), end], 1)
        logits, _ = network(source, torch.cat([end, target[:, :-1]], 1))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.3
