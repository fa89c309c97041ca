"""The precision that ``auto`` stands for on this machine."""

import sys
from collections.abc import Sequence

import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.errors import UserError
from convs2s.models.kernels.choice import fastest_precision
from convs2s.models.kernels.measurements import one_thread
from convs2s.models.kernels.probe import precisions, products
from convs2s.models.kernels.quantized_linear import Precision
from convs2s.models.lstm import Lstm
from convs2s.models.network import Network


def chosen_precision(
    settings: DecodingSettings, networks: Sequence[Network], device: str
) -> Precision:
    """Return the precision that a decoding states, or the fastest one where it states ``auto``.

    On a CPU it is measured for the hypotheses of a full batch and the first of an ensemble's
    networks, and never slower than fp32 for them. On a GPU it is bf16 where that has it.
    """
    if settings.precision != "auto":
        return settings.precision
    found = _fastest(settings, networks, device)
    print(f"precision: auto is {found} here", file=sys.stderr)
    return found


def _fastest(settings: DecodingSettings, networks: Sequence[Network], device: str) -> Precision:
    if device != "cpu":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    has_lstm = any(isinstance(network, Lstm) for network in networks)
    candidates = [name for name in precisions() if name != "int8" or not has_lstm]
    hypotheses = settings.beam * settings.batch_sentences
    try:
        with one_thread():  # as a batch is searched
            return fastest_precision(products(networks[0]), hypotheses, candidates)
    except UserError as error:
        print(f"{error}; precision: auto is not measured", file=sys.stderr)
        return "fp32"
