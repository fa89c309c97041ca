"""From the description of a network to a freshly initialized one."""

from collections.abc import Mapping
from typing import Any

from convs2s.data.vocabulary import PADDING
from convs2s.models.architecture import Architecture
from convs2s.models.convs2s import ConvS2S
from convs2s.models.lstm import Lstm, LstmArchitecture
from convs2s.models.network import Network


def build_network(architecture: Mapping[str, Any], source_types: int, target_types: int) -> Network:
    """Return a freshly initialized network for vocabularies of these sizes."""
    if architecture["kind"] == "lstm":
        lstm = LstmArchitecture.from_settings(architecture)
        return Lstm(lstm, source_types, target_types, PADDING)
    return ConvS2S(Architecture.from_settings(architecture), source_types, target_types, PADDING)
