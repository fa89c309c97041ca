"""One update: micro-batches, their summed gradient, clipping, and a step of the optimizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from convs2s.config.model import Recipe
from convs2s.data.batches import Indices, collate
from convs2s.data.shortlist import Shortlist
from convs2s.data.store import TokenStore
from convs2s.errors import UserError
from convs2s.models.kernels.dropout import hide_masks_from_compiler
from convs2s.models.kernels.logits import BlockLoss, block_loss, summed_cross_entropy
from convs2s.models.network import Network
from convs2s.training.loading import (
    COMPILED_LENGTHS,
    LoadedUpdate,
    Loader,
    LossInputs,
    MicroBatch,
    validation_batches,
)
from convs2s.training.log import log
from convs2s.training.schedule import Moment, build_optimizer, set_learning_rate
from convs2s.training.workers import ALONE, Gradients, Workers

OUT_OF_MEMORY = ("can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""What errors without a class of their own say: of a CPU's allocator, and of a GPU's library."""

GPU_OPTIONS = {
    "combo_kernels": True,
    "combo_kernel_max_num_nodes": 32,
    "keep_addmm_fused_for_half_dtypes": True,
}
"""Options of torch.compile for a GPU."""

InputsOfLoss = Callable[[LossInputs], tuple[Tensor, Tensor, Tensor]]
"""What an updater reads a batch by, or what torch.compile makes of it."""


@dataclass(frozen=True)
class UpdateReport:
    """What an update did."""

    loss: float  # summed over the target tokens, smoothed where the recipe says so, in nats
    tokens: int  # target tokens, ``</s>`` counted
    norm: float  # the gradient's norm before clipping


@dataclass(frozen=True)
class StartedUpdate:
    """An update that the device may still be computing: reading it waits."""

    loss: Tensor  # this worker's share of it, float64
    tokens: int  # target tokens of all workers
    norm: Tensor  # the gradient's norm before clipping


class Updater:
    """Makes updates of one network, and computes its validation loss."""

    def __init__(
        self,
        network: Network,
        recipe: Recipe,
        *,
        seed: int,
        device: str,
        shortlist: Shortlist | None = None,
        workers: Workers = ALONE,
    ) -> None:
        """Build the recipe's optimizer over the network, which is moved to ``device``."""
        self.network = network.to(device)
        self.recipe = recipe
        self.seed = seed
        self.device = device
        self.shortlist = shortlist
        self.workers = workers
        self.optimizer = build_optimizer(network, recipe)
        self._gradients = Gradients(list(network.parameters()), workers)
        is_compiled_for_gpu = recipe.compile and torch.device(device).type == "cuda"
        multiple = COMPILED_LENGTHS if is_compiled_for_gpu else 1
        self.loader = Loader(recipe.batch, shortlist, workers, device, multiple)
        self._inputs_of_loss: InputsOfLoss = self._read_batch
        self._block_loss: BlockLoss = block_loss
        if recipe.compile:
            self._compile(is_compiled_for_gpu)

    def _compile(self, is_for_gpu: bool) -> None:
        """Have torch.compile make kernels of what each micro-batch computes."""
        hide_masks_from_compiler()
        # Constants such as sqrt(0.5) are a part of the kernels, and no arguments of theirs.
        torch._dynamo.config.specialize_float = True
        options: dict[str, str | int | bool] = {}
        if is_for_gpu:
            # What layers do alike, such as to normalize their weights, shares kernels, and a bias
            # is added by the product that it belongs to.
            for name, value in GPU_OPTIONS.items():
                if name in torch._inductor.list_options():  # an older torch may lack it
                    options[name] = value
        # Every batch has lengths of its own.
        compiled = partial(torch.compile, dynamic=True, options=options)
        self._inputs_of_loss = compiled(self._read_batch)
        if is_for_gpu:
            self._block_loss = compiled(block_loss)

    def start(self, loaded: LoadedUpdate, moment: Moment) -> StartedUpdate:
        """Start an update, without waiting for the device.

        Raises:
            UserError: A single pair does not fit into memory.
        """
        self.network.train()
        divisor = loaded.tokens if self.recipe.normalize == "tokens" else len(loaded.rows)
        loss = self._gradient(loaded, moment, divisor)
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        set_learning_rate(self.optimizer, moment.learning_rate, self.recipe.velocity)
        self.optimizer.step()
        return StartedUpdate(loss, loaded.tokens, norm)

    def read(self, started: Sequence[StartedUpdate]) -> list[UpdateReport]:
        """Wait for updates, and say what they did: one transfer for all of them."""
        figures = [update.loss for update in started]
        figures += [update.norm.double() for update in started]
        losses, norms = torch.stack(figures).view(2, -1).tolist()
        tokens = [update.tokens for update in started]
        return list(map(UpdateReport, self.workers.totals(losses), tokens, norms))

    def update(self, store: TokenStore, rows: Indices, moment: Moment) -> UpdateReport:
        """Make one update from the pairs ``rows``, and wait for it."""
        (report,) = self.read([self.start(self.loader.load(store, rows), moment)])
        return report

    def _gradient(self, loaded: LoadedUpdate, moment: Moment, divisor: int) -> Tensor:
        """Set the gradient to that of the update's summed loss / divisor, over all workers.

        A micro-batch that does not fit into memory is halved, and all workers start over, as the
        one that failed may have left a share of its gradient. How many a batch has changes the
        dropout masks and the rounding, nothing else. Return this worker's loss, in float64.
        """
        pending = list(loaded.micro_batches)
        while True:
            self._gradients.clear()
            total = torch.zeros((), dtype=torch.float64, device=self.device)
            failed = None
            for index, (micro_batch, inputs) in enumerate(pending):
                # Dropout follows from the place alone: a resumed training has the same masks.
                entropy = [self.seed, moment.epoch, moment.batch, *micro_batch.key]
                (seed,) = np.random.SeedSequence(entropy).generate_state(1, np.uint64)
                torch.manual_seed(int(seed))
                if index == len(pending) - 1:
                    self._gradients.expect_last()
                loss = self._add_gradient(inputs, divisor)
                if loss is None:
                    failed = index
                    break
                total += loss
            self._gradients.finish()
            if not any(self.workers.flags([failed is not None])):
                return total
            if failed is not None:
                micro_batch, _ = pending[failed]
                pending[failed : failed + 1] = self._halved(micro_batch, loaded, moment)

    def _halved(
        self, micro_batch: MicroBatch, loaded: LoadedUpdate, moment: Moment
    ) -> list[tuple[MicroBatch, LossInputs]]:
        """Return two micro-batches for one that did not fit into memory."""
        if len(micro_batch.rows) == 1:
            row = int(micro_batch.rows[0])
            source, target = loaded.store[row]
            raise UserError(
                f"{loaded.store.path}: out of memory at pair {row + 1} alone, of {len(source)} "
                f"and {len(target)} tokens: lower clean.tokens, or train a smaller network or "
                "on a larger device"
            )
        log(
            f"out of memory in epoch {moment.epoch}, batch {moment.batch + 1}: its "
            f"micro-batch of {len(micro_batch.rows)} pairs and {micro_batch.size} padded "
            f"tokens is halved (batch.micro_batch_tokens below {micro_batch.size} avoids "
            "the second try)"
        )
        return self.loader.read(loaded.store, micro_batch.halves(), loaded.types)

    def _add_gradient(self, inputs: LossInputs, divisor: int) -> Tensor | None:
        """Return the summed loss, or None where the batch does not fit into memory."""
        try:
            loss = self._loss(inputs, self.recipe.label_smoothing)
            (loss / divisor).backward()
            return loss.detach()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Only here are the error, and with it the tensors of all frames that it passed, gone.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _loss(self, inputs: LossInputs, label_smoothing: float) -> Tensor:
        """Return the negative log-likelihood summed over the target tokens, in nats."""
        inputs = inputs.to(self.device)
        device_type = torch.device(self.device).type
        with torch.autocast(device_type, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            entering = self._inputs_of_loss(inputs)
            return summed_cross_entropy(*entering, inputs.target, label_smoothing, self._block_loss)

    def _read_batch(self, inputs: LossInputs) -> tuple[Tensor, Tensor, Tensor]:
        """Return what enters the output layer (N, f_out), its weight (S, f_out) and bias (S,)."""
        features = self.network.features(inputs.source, inputs.previous, inputs.lengths)
        features = features.flatten(0, 1)  # (B * n, f_out)
        features = features.index_select(0, inputs.positions)
        weight = self.network.output.weight()
        bias: Tensor = self.network.output.bias
        if inputs.types is not None:
            weight = weight.index_select(0, inputs.types)
            bias = bias.index_select(0, inputs.types)
        return features, weight, bias

    @torch.no_grad()
    def validate(
        self, store: TokenStore, *, full: bool = False, sources: Indices | None = None
    ) -> float:
        """Return the validation loss in nats per target token, ``</s>`` counted.

        A shortlist, unless the loss is ``full``, is made for each batch without its references:
        those outside are ``<unk>``. ``sources`` are as of ``collate``.
        """
        self.network.eval()
        shortlist = None if full else self.shortlist
        batches = validation_batches(store, self.recipe, shortlist, sources)
        losses = torch.zeros(len(batches), dtype=torch.float64, device=self.device)
        for index in range(self.workers.rank, len(batches), self.workers.count):
            batch = collate(store, batches[index], sources, self.loader.multiple)
            types = None if shortlist is None else shortlist.types(batch.source)
            losses[index] = self._loss(self.loader.inputs(batch, types), 0.0)
        total = 0.0
        # Over the workers each loss is summed with zeros, and the losses are summed in their order:
        # the same bytes for any number of workers.
        for loss in self.workers.totals(losses.tolist()):
            total += loss
        return total / int(store.lengths("target").sum())


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that memory ran out, the device's or the machine's."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(words in str(error) for words in OUT_OF_MEMORY)
