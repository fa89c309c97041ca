"""``convs2s kernels``: how fast this machine multiplies, and what is chosen for it."""

import argparse
from pathlib import Path

from convs2s.cli.common import add_threads

TYPES = 10_000
"""Of each side's vocabulary, where only speed matters."""

DECODED_ROWS = 1, 5, 64, 320
"""Hypotheses at a time: those of one sentence and of 64, greedily and with 5 of each."""

DEFAULT_ROWS = 320
"""Those of a batch with the default settings."""


def add_kernels(command: argparse.ArgumentParser) -> None:
    """Add the options of ``kernels``."""
    command.description = (
        "Measure the matrix products of a model's training by each kernel, and those of its "
        "decoding in each precision by one thread, as a batch is searched, in GFLOP/s. The kernel "
        "that a training takes is the one of config.yaml's products; with auto, the faster one "
        "when it was first measured here."
    )
    command.add_argument("--model", default="small", help="a name of config/models.yaml [small]")
    add_threads(command)
    command.set_defaults(run=_kernels)


def _kernels(arguments: argparse.Namespace) -> None:
    import torch

    from convs2s.config.load import load
    from convs2s.models.build import build_network
    from convs2s.models.kernels import choice
    from convs2s.models.kernels.measurements import one_thread

    torch.set_num_threads(arguments.threads)
    model = load(Path.cwd()).model(arguments.model)
    products = choice.products_of(build_network(model.architecture, TYPES, TYPES))
    chosen = choice.fastest_kernel(products)
    print(f"{'training in fp32':24} GFLOP/s")
    for kernel, rate in choice.training_rates(products).items():
        print(f"{kernel:24} {rate / 1e9:7.0f}{'   chosen' if kernel == chosen else ''}")
    print(f"\n{'decoding, rows at a time':24}" + "".join(f"{rows:8}" for rows in DECODED_ROWS))
    precisions = choice.precisions()
    with one_thread():
        by_rows = choice.decoding_rates(products, DECODED_ROWS)
        auto = choice.fastest_precision(products, DEFAULT_ROWS, precisions)
    for name in precisions:
        figures = "".join(f"{by_rows[rows][name] / 1e9:8.0f}" for rows in DECODED_ROWS)
        print(f"{name:24}{figures}{'   auto' if name == auto else ''}")
