"""One update: micro-batches, their summed gradient, clipping, and a step of the optimizer."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from convs2s.config.model import Recipe
from convs2s.data.batches import Batch, Indices, Rows, collate
from convs2s.data.shortlist import Shortlist, Types, places_of
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import PADDING
from convs2s.devices import tokens_at_a_time
from convs2s.errors import UserError
from convs2s.models.kernels.dropout import hide_masks_from_compiler
from convs2s.models.kernels.logits import (
    NONE_IGNORED,
    block_loss,
    summed_cross_entropy,
)
from convs2s.models.network import Network
from convs2s.models.recorded_ensemble import Recording
from convs2s.training.loading import (
    GPU_LENGTHS,
    LoadedUpdate,
    LossInputs,
    MicroBatch,
    split_batch,
    validation_batches,
)
from convs2s.training.log import log
from convs2s.training.recorded import RECORDS_NOTHING, RecordedGradient, fill_up
from convs2s.training.schedule import Moment, build_optimizer, set_learning_rate
from convs2s.training.workers import ALONE, Gradients, Workers

OUT_OF_MEMORY = ("can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Texts of the RuntimeErrors that mean "out of memory": torch's on a CPU, and cuBLAS's."""

GPU_OPTIONS = {
    "combo_kernels": True,
    "combo_kernel_max_num_nodes": 32,
    "keep_addmm_fused_for_half_dtypes": True,
}
"""Options of torch.compile for a GPU.

With combo kernels, equal work of several layers, such as the normalization of their weights, shares
a kernel: up to 32 layers, where torch's default is 8. The last option lets the matrix product add
the bias.
"""


@dataclass(frozen=True)
class UpdateReport:
    """The figures of a finished update, over all workers."""

    # Summed over the target tokens, in nats; with the recipe's label smoothing.
    loss: float
    tokens: int  # number of target tokens, including ``</s>``
    norm: float  # norm of the gradient before clipping


@dataclass(frozen=True)
class StartedUpdate:
    """The figures of an update that the device may still be computing.

    Reading the tensors waits for the device.
    """

    loss: Tensor  # this worker's share of the summed loss, a float64 scalar
    tokens: int  # target tokens of all workers
    norm: Tensor  # norm of the gradient before clipping, a scalar


class Updater:
    """Makes updates of one network, and computes its validation loss.

    With several workers, every worker must call ``start``, ``read`` and ``validate`` in the same
    order.
    """

    def __init__(
        self,
        network: Network,
        recipe: Recipe,
        *,
        seed: int,
        device: str,
        shortlist: Shortlist | None = None,
        workers: Workers = ALONE,
        recording: Callable[[], Recording] | None = None,
    ) -> None:
        """Move the network to ``device``, build its optimizer, and compile it if so configured.

        ``seed`` is the seed of the dropout masks and of the data order. ``recording`` makes empty
        recordings for the gradients (``RecordedGradient``). If it is None, gradients are recorded
        only on a GPU, only if the network is recordable, and only without a shortlist, whose size
        differs from update to update.
        """
        self.network = network.to(device)
        self.recipe = recipe
        self.seed = seed
        self.device = device
        self.shortlist = shortlist
        self.workers = workers
        self.optimizer = build_optimizer(network, recipe)
        self._device_type = torch.device(device).type
        is_on_gpu = self._device_type == "cuda"
        is_recordable = network.is_recordable and shortlist is None
        if recording is None and is_on_gpu and is_recordable:
            recording = partial(Recording, torch.cuda.graph_pool_handle())
        if RECORDS_NOTHING in os.environ:
            recording = None
        is_recorded = recording is not None
        self._recorded = RecordedGradient(device, recording) if recording else None
        self._gradients = Gradients(
            list(network.parameters()), workers, in_place=is_recorded
        )
        # The most padded tokens of a micro-batch, the same for all workers; None: no limit.
        self.limit = recipe.batch.micro_batch_tokens
        if is_on_gpu and self.limit is not None:
            self.limit = workers.least(tokens_at_a_time(self.limit, device))
        # The most padded tokens that fit into this worker's memory; None if it has not run out.
        self.fitting: int | None = None
        is_compiled_for_gpu = recipe.compile and is_on_gpu
        # Sentences are padded to a multiple of this many tokens.
        self.multiple = GPU_LENGTHS if is_compiled_for_gpu or is_recorded else 1
        # ``_compile`` replaces these two functions by compiled ones.
        self._output_layer_inputs = self._compute_output_layer_inputs
        self._block_loss = block_loss
        if recipe.compile:
            self._compile(is_compiled_for_gpu)

    def _compile(self, is_for_gpu: bool) -> None:
        """Compile the network's forward pass, and on a GPU the loss, with torch.compile."""
        hide_masks_from_compiler()
        # Compile constants such as sqrt(0.5) into the kernels, rather than pass them as arguments.
        torch._dynamo.config.specialize_float = True
        options: dict[str, str | int | bool] = {}
        if is_for_gpu:
            for name, value in GPU_OPTIONS.items():
                # An older torch may lack an option.
                if name in torch._inductor.list_options():
                    options[name] = value
        # The lengths differ from batch to batch, so the kernels must accept any length.
        compiled = partial(torch.compile, dynamic=True, options=options)
        self._output_layer_inputs = compiled(self._compute_output_layer_inputs)
        if is_for_gpu:
            self._block_loss = compiled(block_loss)

    def load(self, store: TokenStore, rows: Rows) -> LoadedUpdate:
        """Load this worker's share of an update from the pairs ``rows``.

        May be called from any thread.
        """
        pairs = [store[int(row)] for row in rows]
        # (B, 2), the number of source and of target tokens of each pair
        lengths = np.array([(len(source), len(target)) for source, target in pairs])
        workers = self.workers
        limit = self.limit
        micro_batches = split_batch(rows, lengths, limit, workers.count)
        # The whole update has one shortlist, so the loss does not depend on the micro-batches.
        types = None
        if self.shortlist is not None:
            sources, targets = zip(*pairs, strict=True)
            types = self.shortlist.types(
                np.concatenate(sources), np.concatenate(targets)
            )
        share = self._read(store, micro_batches[workers.rank :: workers.count], types)
        tokens = int(lengths[:, 1].sum())
        return LoadedUpdate(store, rows, limit, tokens, types, share)

    def _read(
        self,
        store: TokenStore,
        micro_batches: Iterable[MicroBatch],
        types: Types | None,
    ) -> list[tuple[MicroBatch, LossInputs]]:
        """Return each micro-batch with the inputs of its loss; for ``types`` see ``_inputs``."""
        loaded = []
        for micro_batch in micro_batches:
            batch = collate(store, micro_batch.rows, multiple=self.multiple)
            if self._recorded is None:
                inputs = self._inputs(batch, types)
            else:  # a recording can be replayed only for inputs of the same shapes
                inputs = self._inputs(fill_up(batch), types, skips_padding=False)
            loaded.append((micro_batch, inputs))
        return loaded

    def _inputs(
        self, batch: Batch, types: Types | None, *, skips_padding: bool = True
    ) -> LossInputs:
        """Return the inputs of the loss of a batch.

        With ``types``, the softmax is over these types only, and a target token outside of them
        counts as ``<unk>``. With None, the softmax is over the whole vocabulary. Unless
        ``skips_padding``, the target keeps its padding, so that the shapes of all inputs depend
        only on the shape of the batch.
        """
        tokens = batch.target if types is None else places_of(types, batch.target)
        tokens = tokens.reshape(-1)
        positions = None
        if skips_padding:
            # Find the positions here, on the CPU. On a GPU this would wait for the device.
            real = np.flatnonzero(tokens != PADDING)
            positions = self._tensor(real)
            tokens = tokens[real]
        return LossInputs(
            source=self._tensor(batch.source),
            previous=self._tensor(batch.previous),
            positions=positions,
            target=self._tensor(tokens),
            lengths=torch.from_numpy((batch.source != PADDING).sum(1)),
            types=None if types is None else self._tensor(types),
        )

    def _tensor(self, array: Indices) -> Tensor:
        """Return an array as a tensor in CPU memory, pinned if the device is a GPU."""
        tensor = torch.from_numpy(array)
        return tensor.pin_memory() if self._device_type == "cuda" else tensor

    def start(self, loaded: LoadedUpdate, moment: Moment) -> StartedUpdate:
        """Start an update: the gradient of the loaded pairs, clipping, and the optimizer's step.

        This does not wait for the device. ``read`` waits for the figures.

        Raises:
            UserError: A single pair does not fit into memory.
        """
        self.network.train()
        if loaded.limit != self.limit:  # the limit was lowered after loading
            loaded = self.load(loaded.store, loaded.rows)
        divisor = (
            loaded.tokens if self.recipe.normalize == "tokens" else len(loaded.rows)
        )
        loss = self._gradient(loaded, moment, divisor)
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        set_learning_rate(self.optimizer, moment.learning_rate, self.recipe.velocity)
        self.optimizer.step()
        return StartedUpdate(loss, loaded.tokens, norm)

    def read(self, started: Sequence[StartedUpdate]) -> list[UpdateReport]:
        """Wait for started updates, and return their figures in the same order.

        The figures of all updates come from the device in one transfer.
        """
        figures = [update.loss for update in started]
        figures += [update.norm.double() for update in started]
        # (2, U): the losses and the norms of the U updates.
        losses, norms = torch.stack(figures).view(2, -1).tolist()
        # The losses are those of this worker's pairs. The norms need no sum: the gradients were
        # already summed over the workers, so every worker has the same norms.
        total_losses = self.workers.totals(losses)
        tokens = [update.tokens for update in started]
        return list(map(UpdateReport, total_losses, tokens, norms))

    def _gradient(
        self,
        loaded: LoadedUpdate,
        moment: Moment,
        divisor: int,
    ) -> Tensor:
        """Compute the gradient of the update's loss / divisor; return this worker's summed loss.

        The gradient is summed over all micro-batches of all workers, and is left in the
        parameters. The returned loss is a float64 scalar on the device.

        If a micro-batch does not fit into memory, this worker halves it and starts again, because
        the failed backward pass may have added a part of its gradient. Meanwhile the other workers
        wait for the sum. Halving changes only the dropout masks and the rounding.
        """
        pending = list(loaded.micro_batches)
        self._gradients.clear()
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        done = 0
        while done < len(pending):
            micro_batch, inputs = pending[done]
            # The seed of the dropout masks depends only on the training's seed and on these
            # numbers, so that a resumed training has the same masks.
            entropy = [self.seed, moment.epoch, moment.batch, *micro_batch.key]
            (seed,) = np.random.SeedSequence(entropy).generate_state(1, np.uint64)
            torch.manual_seed(int(seed))
            is_replayed = self._recorded is not None and self._recorded.replays(inputs)
            if done == len(pending) - 1 and not is_replayed:
                self._gradients.expect_last()
            loss = self._add_gradient(inputs, divisor)
            if loss is None:
                halves = self._halved(micro_batch, loaded, moment)
                pending[done : done + 1] = halves
                self._gradients.start_over()
                total.zero_()
                done = 0
            else:
                total += loss
                done += 1
        self._gradients.finish()
        return total

    def _halved(
        self,
        micro_batch: MicroBatch,
        loaded: LoadedUpdate,
        moment: Moment,
    ) -> list[tuple[MicroBatch, LossInputs]]:
        """Return the loaded halves of a micro-batch that did not fit into memory.

        The size of the first half, which is never the smaller one, becomes the limit for later
        micro-batches (``fitting``).

        Raises:
            UserError: The micro-batch is a single pair.
        """
        if len(micro_batch.rows) == 1:
            row = int(micro_batch.rows[0])
            source, target = loaded.store[row]
            raise UserError(
                f"{loaded.store.path}: pair {row + 1} alone ({len(source)} source, {len(target)} "
                "target tokens) does not fit into memory; lower clean.tokens, train a smaller "
                "network, or use a device with more memory"
            )
        halves = micro_batch.halves()
        self.fitting = min(halves[0].size, self.fitting or halves[0].size)
        log(
            f"out of memory in epoch {moment.epoch}, batch {moment.batch + 1}, worker "
            f"{self.workers.rank}: a micro-batch of {len(micro_batch.rows)} pairs and "
            f"{micro_batch.size} padded tokens is halved, and later ones have at most "
            f"{self.fitting} (to avoid this, set batch.micro_batch_tokens to {self.fitting})"
        )
        return self._read(loaded.store, halves, loaded.types)

    def _add_gradient(self, inputs: LossInputs, divisor: int) -> Tensor | None:
        """Add the gradient of a micro-batch's loss / divisor to the parameters' gradients.

        Return the summed loss in nats, not divided, or None if memory runs out; the gradients may
        then be incomplete.
        """
        try:
            if self._recorded is not None:
                return self._recorded.add(self._backward, inputs, divisor)
            return self._backward(inputs, divisor)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # The error referred to frames, and so to their tensors. Python drops the error at the end
        # of the except block, so their memory can be freed only here.
        if self._recorded is not None:
            self._recorded.clear()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _backward(self, inputs: LossInputs, divisor: int | Tensor) -> Tensor:
        """Do the work of ``_add_gradient``, or fail if memory runs out."""
        loss = self._loss(inputs, self.recipe.label_smoothing)
        (loss / divisor).backward()
        return loss.detach()

    def _loss(self, inputs: LossInputs, label_smoothing: float) -> Tensor:
        """Return the loss summed over the target tokens, in nats, a scalar on the device.

        Without label smoothing, the loss is the negative log-likelihood.
        """
        inputs = inputs.to(self.device)
        with torch.autocast(
            self._device_type, torch.bfloat16, enabled=self.recipe.precision == "bf16"
        ):
            features, weight, bias = self._output_layer_inputs(inputs)
            return summed_cross_entropy(
                features,
                weight,
                bias,
                inputs.target,
                label_smoothing,
                self._block_loss,
                PADDING if inputs.positions is None else NONE_IGNORED,
            )

    def _compute_output_layer_inputs(
        self, inputs: LossInputs
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the inputs (N, f_out), weight (S, f_out) and bias (S,) of the output layer.

        N is the number of target tokens without padding, unless ``inputs.positions`` is None. S is
        the number of types that the softmax is over: the shortlist, or the whole vocabulary.
        """
        features = self.network.features(inputs.source, inputs.previous, inputs.lengths)
        features = features.flatten(0, 1)  # (B * n, f_out)
        if inputs.positions is not None:
            features = features.index_select(0, inputs.positions)
        weight = self.network.output.weight()
        bias: Tensor = self.network.output.bias
        if inputs.types is not None:
            weight = weight.index_select(0, inputs.types)
            bias = bias.index_select(0, inputs.types)
        return features, weight, bias

    @torch.no_grad()
    def validate(
        self,
        store: TokenStore,
        *,
        full: bool = False,
        sources: Indices | None = None,
    ) -> float:
        """Return the validation loss in nats per target token, including ``</s>``.

        If the model has a shortlist and ``full`` is false, the softmax is over a shortlist that is
        made for each batch from its sources alone; a target token outside of it counts as
        ``<unk>``. Otherwise the softmax is over the whole vocabulary. ``sources`` replaces the
        sources of the pairs, as in ``collate``.
        """
        self.network.eval()
        shortlist = None if full else self.shortlist
        batches = validation_batches(store, self.recipe, shortlist, sources)
        losses = torch.zeros(len(batches), dtype=torch.float64, device=self.device)
        for index in range(self.workers.rank, len(batches), self.workers.count):
            batch = collate(store, batches[index], sources, self.multiple)
            types = None if shortlist is None else shortlist.types(batch.source)
            losses[index] = self._loss(self._inputs(batch, types), 0.0)
        # Every other worker has 0 for this worker's batches, so the sum over the workers is exact.
        # The losses are then added in the order of the batches, so that the result has the same
        # bytes for any number of workers. From Python 3.12 on, ``sum`` would round differently.
        total = 0.0
        for loss in self.workers.totals(losses.tolist()):
            total += loss
        return total / int(store.lengths("target").sum())


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that the memory of the device or of the machine ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(words in str(error) for words in OUT_OF_MEMORY)
