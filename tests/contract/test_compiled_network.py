"""What torch.compile is given of a training."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from convs2s.training.schedule import Moment
from tests.support import tiny


def test_a_network_is_one_graph(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A break in it is an error, and a batch of other lengths compiles nothing anew."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    compiled = partial(torch.compile, backend=backend, fullgraph=True)
    monkeypatch.setattr(torch, "compile", compiled)
    one = tiny.trainer(task, tmp_path, compile=True)
    for rows in (np.arange(16), np.arange(20, 23)):
        loaded = one.updater.load(one.train, rows)
        one.updater.start(loaded, Moment(1, 0, 0.1))
    assert len(graphs) == 1
