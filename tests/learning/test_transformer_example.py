"""The example of an architecture in docs/extending.md learns to reverse."""

from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from convs2s.config.architecture import parse_architecture
from convs2s.config.extensions import export_extensions
from convs2s.data.vocabulary import END
from convs2s.models.build import build_network


def test_it_learns_to_reverse(root: Path) -> None:
    export_extensions(["examples/transformer.py"], root)
    settings = {"kind": "transformer", "layers": 2, "width": 32, "heads": 4}
    torch.manual_seed(1)
    network = build_network(parse_architecture({**settings, "dropout": 0.0}), 20, 20)
    end = torch.full((64, 1), END)
    optimizer = torch.optim.Adam(network.parameters(), 0.003)
    for _ in range(100):
        words = torch.randint(5, 15, (64, 3))
        source = torch.cat([words, end], 1)
        target = torch.cat([words.flip(1), end], 1)
        logits, _ = network(source, target.roll(1, 1))
        loss = cross_entropy(logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.3
