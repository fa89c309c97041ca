"""From the description of a network to a freshly initialized one."""

from convs2s.config.architecture import Architecture, LstmArchitecture
from convs2s.data.vocabulary import PADDING
from convs2s.models.convs2s import ConvS2S
from convs2s.models.lstm import Lstm
from convs2s.models.network import Network


def build_network(architecture: Architecture, source_types: int, target_types: int) -> Network:
    """Return a freshly initialized network for vocabularies of these sizes."""
    if isinstance(architecture, LstmArchitecture):
        return Lstm(architecture, source_types, target_types, PADDING)
    return ConvS2S(architecture, source_types, target_types, PADDING)
