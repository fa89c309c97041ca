"""The speed of updates on this machine, measured once and kept in the results folder."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from pydantic import TypeAdapter

from convs2s.config.costs import Costs, GpuRates
from convs2s.config.identity import recipe_identity
from convs2s.costs.roofline import Update, Work
from convs2s.data.store import TokenStore, write_store
from convs2s.data.vocabulary import END
from convs2s.devices import check_recipe, keep_freed_memory
from convs2s.errors import failures_of_file
from convs2s.files.text import read_json, write_json
from convs2s.manifest import processor
from convs2s.models.build import build_network
from convs2s.training.run import faster_precision
from convs2s.training.schedule import Moment
from convs2s.training.update import Updater

_SECONDS = 1.0  # updates of each size are repeated for this long
_CPU_TOKENS = 960  # maximum number of tokens in a measured update on a CPU
_FEWER = 8  # the number of tokens of the larger measured update, divided by that of the smaller
# Key of a device, its threads, a network and its recipe -> seconds of an update without tokens, and
# additional seconds for each token.
_MEASURED = TypeAdapter(dict[str, tuple[float, float]])


class MeasuredSpeed:
    """The speed of this machine's device.

    Only the smallest network of each kind and precision is measured, with random tokens. The time
    of the other networks is assumed to be proportional to the number of their weights.
    """

    def __init__(
        self,
        works: Iterable[Work],
        costs: Costs,
        device: str,
        kept: Path,
    ) -> None:
        """Measure the updates that are not in the file ``kept``, and add them to it.

        Raises:
            UserError: the file is damaged, or the device cannot train one of the networks.
        """
        self.device = processor()
        self.gpu: GpuRates | None = None
        self.is_gpu = device == "cuda"
        if self.is_gpu:
            self.device = torch.cuda.get_device_name()
            # The device name has further words, such as "NVIDIA" before the name in the file.
            named = (gpu for gpu in costs.gpus if gpu.name in self.device)
            self.gpu = next(named, None)
        else:
            keep_freed_memory()
        measured: dict[str, tuple[float, float]] = {}
        if kept.is_file():
            with failures_of_file(str(kept), "no measured updates: remove it"):
                measured = _MEASURED.validate_python(read_json(kept), strict=False)
        # Kind and precision -> the smallest network, and its measured seconds.
        self._references: dict[tuple[str, str], tuple[Work, tuple[float, float]]] = {}
        # Sorted, so that the smallest network of each kind comes first and is the reference.
        for work in sorted(works, key=lambda work: work.weights):
            kind = (work.architecture.kind, work.recipe.precision)
            if kind in self._references:
                continue
            check_recipe(work.recipe, device)
            identity = recipe_identity(work.architecture, work.recipe)
            key = json.dumps([self.device, work.threads, identity])
            if key not in measured:
                measured[key] = _seconds(work, costs, device)
                write_json(kept, measured)
            self._references[kind] = (work, measured[key])

    def update(self, work: Work, tokens: float) -> Update:
        """Return an update of ``tokens`` target tokens."""
        kind = (work.architecture.kind, work.recipe.precision)
        reference, (fixed, per_token) = self._references[kind]
        seconds = fixed + per_token * tokens
        # An extension's network that does not count its parameters has 0 weights here.
        if reference.weights:
            seconds *= work.weights / reference.weights
        return Update(seconds, work.recipe.precision, None)


def _seconds(work: Work, costs: Costs, device: str) -> tuple[float, float]:
    """Return the seconds of an update without tokens, and the additional seconds for each token.

    They follow from measured updates of two sizes. The network is not compiled, because compiling
    takes minutes.
    """
    torch.set_num_threads(work.threads)
    network = build_network(work.architecture, *work.types)
    # The sentences have the usual length, or a smaller one if the network has fewer positions.
    positions = filter(None, network.positions.values())
    length = min([round(costs.sentence_tokens.value), *positions])
    most = work.tokens if device == "cuda" else min(work.tokens, _CPU_TOKENS)
    sentences = max(2, round(most / length))
    # Shape: (sentences, length). Each row is the source and the target of a pair.
    tokens = np.random.default_rng(1).integers(
        END + 1, min(work.types), (sentences, length)
    )
    tokens[:, -1] = END
    recipe = work.recipe.model_copy(update={"compile": False})
    if recipe.precision == "auto":
        faster = {"precision": faster_precision(network, device)}
        recipe = recipe.model_copy(update=faster)
    updater = Updater(network, recipe, seed=1, device=device)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.arrow"
        write_store(path, [(row, row) for row in tokens.tolist()])
        store = TokenStore(path)
        fewer = max(1, sentences // _FEWER)
        small = _shortest(updater, store, fewer)
        large = _shortest(updater, store, sentences)
    # The seconds as a function of the tokens are the line through the two measured points. Noise
    # must not make a time negative.
    per_token = max(0.0, large - small) / ((sentences - fewer) * length)
    return max(0.0, small - fewer * length * per_token), per_token


def _shortest(updater: Updater, store: TokenStore, sentences: int) -> float:
    """Return the seconds of the fastest update of ``sentences`` sentences.

    The first update does not count, because it is slower.
    """
    # On a CPU, the processor time of all threads is measured, because other processes of the
    # machine change it less than the elapsed time.
    clock = time.process_time
    threads = torch.get_num_threads()
    if updater.device == "cuda":
        clock = time.perf_counter
        threads = 1
    loaded = updater.load(store, np.arange(sentences))
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < 2 or time.perf_counter() < end:
        started = clock()
        moment = Moment(1, len(times), updater.recipe.learning_rate)
        updater.read([updater.start(loaded, moment)])
        times.append((clock() - started) / threads)
    return min(times[1:])
