"""What a sentence's shortlist leaves it does not depend on those of the rest of its batch."""

import pytest
import torch
from torch import Tensor

from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.models.build import build_network
from convs2s.models.ensemble import Ensemble
from convs2s.models.steps import Shortlisted
from tests.support import networks, tiny

TYPES, SENTENCES, LENGTH = 400, 24, 12


def shortlist(own: Tensor) -> Shortlisted:
    """Return that of a batch, of which each sentence has its own types (B, TYPES) as booleans."""
    types = torch.nonzero(own.any(0)).flatten()
    return Shortlisted(types.numpy(), (~own[:, types]).numpy())


def found(ensemble: Ensemble, source: Tensor, own: Tensor) -> list[list[Hypothesis]]:
    return beam_search(ensemble, source, networks.options(beam=4), shortlist(own))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_another_shortlist_beside_it_changes_no_output(precision: str) -> None:
    torch.manual_seed(3)
    network = build_network(tiny.settings().architecture, TYPES, TYPES)
    for parameter in network.parameters():
        parameter.data.mul_(1.5)
    ensemble = Ensemble([network], precision=precision)  # type: ignore[arg-type]
    source = torch.randint(3, TYPES, (SENTENCES, LENGTH))
    source[:, -1] = 1
    own = torch.rand(SENTENCES, TYPES) < 0.3
    own[:, :3] = True
    together = found(ensemble, source, own)
    for row, expected in enumerate(together):
        (alone,) = found(ensemble, source[row : row + 1], own[row : row + 1])
        assert [one.tokens for one in alone] == [one.tokens for one in expected]
        assert [one.score for one in alone] == pytest.approx(
            [one.score for one in expected]
        )
