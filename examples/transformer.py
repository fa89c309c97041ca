"""A new architecture in one file: the Transformer (Vaswani et al. 2017), with pre-normalization.

Run it: put `extensions: [examples/transformer.py]` into config.yaml, copy examples/models.yaml into
config/models.d/, and

    snakemake results/demo_en_fr/models/transformer/seed1/test.beam5.bleu.json

It shows what a network of another kind has to offer: settings, which a plan reads without torch; a
network, which the trainer asks for logits; and its weights as a search reads them, token by token.
"""

import math
from typing import Literal

from convs2s.config.architecture import NetworkSettings, StackDepth, Width
from convs2s.config.section import PositiveInt, Probability
from convs2s.errors import UserError


class TransformerSettings(NetworkSettings):
    """The keys of a model's `architecture` where `kind` is transformer."""

    kind: Literal["transformer"]
    """Attention alone (Vaswani et al. 2017)."""
    layers: StackDepth = 6
    """Layers of the encoder and of the decoder."""
    width: Width = 512
    """Width of the embeddings and layers; the feed-forward layers are four times as wide."""
    heads: PositiveInt = 8
    """Attention heads, by which the width can be divided."""
    dropout: Probability = 0.1
    """Probability that dropout sets a value to zero."""

    def check(self, where: str) -> None:
        """Check that each head has as many of the width's values as the others."""
        if self.width % self.heads:
            raise UserError(
                f"{where}.heads: {self.width} values cannot be shared by {self.heads}"
            )

    def build(self, source_types: int, target_types: int) -> "Transformer":
        """Return a freshly initialized network, by what is defined below."""
        return Transformer(self, source_types, target_types)


ARCHITECTURES = {"transformer": TransformerSettings}

# A plan of the workflow reads no further: it does without torch.
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from convs2s.data.vocabulary import PADDING  # noqa: E402
from convs2s.models.ensemble import for_inference  # noqa: E402
from convs2s.models.kernels.linear_map import LinearMap  # noqa: E402
from convs2s.models.layers import PlainOutput  # noqa: E402
from convs2s.models.network import Network  # noqa: E402
from convs2s.models.steps import Precision  # noqa: E402

# Shapes: B sentences, h heads, m source length, n target length, w width. Keys and values are
# (B, h, m, w / h) each.
KeysAndValues = tuple[Tensor, Tensor]


class Embedding(nn.Module):
    """Token embeddings plus sines of the position; `tokens` is what model files are checked by."""

    def __init__(self, types: int, settings: TransformerSettings) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(types, settings.width))
        nn.init.normal_(self.tokens, 0.0, settings.width**-0.5)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, tokens: Tensor, first: int = 0) -> Tensor:
        """Map (B, n), whose first token has the position `first`, to (B, n, w)."""
        width = self.tokens.shape[1]
        channels = torch.arange(width, device=tokens.device)
        positions = torch.arange(first, first + tokens.shape[1], device=tokens.device)
        angles = positions.unsqueeze(1) * torch.exp(
            channels // 2 * (-2 * math.log(1e4) / width)
        )
        waves = torch.where(channels % 2 == 0, angles.sin(), angles.cos())
        embedded: Tensor = (
            functional.embedding(tokens, self.tokens) * math.sqrt(width) + waves
        )
        return self.dropout(embedded)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Attention of several heads."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (
            nn.Linear(settings.width, settings.width) for _ in range(4)
        )
        self._heads = settings.heads

    def _split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self._heads, width // self._heads).transpose(1, 2)

    def read(self, x: Tensor) -> KeysAndValues:
        """Return the keys and values of (B, m, w)."""
        return self._split(self.key(x)), self._split(self.value(x))

    def forward(
        self, x: Tensor, memory: KeysAndValues, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attend from (B, n, w) where the mask is False; return the same and weights (B, n, m)."""
        scores = self._split(self.query(x)) @ memory[0].transpose(2, 3)
        scores = scores / math.sqrt(memory[0].shape[3])
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        weights = scores.softmax(3)
        return self.output(
            (weights @ memory[1]).transpose(1, 2).flatten(2)
        ), weights.mean(1)


class Layer(nn.Module):
    """Attention to its own side, in the decoder to the source, and a feed-forward layer."""

    def __init__(self, settings: TransformerSettings, attends: bool) -> None:
        super().__init__()
        width = settings.width
        self.own, self.source = (
            Attention(settings),
            Attention(settings) if attends else None,
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.forward_layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(settings.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        past: KeysAndValues | None = None,
        source: tuple[KeysAndValues, Tensor] | None = None,
    ) -> tuple[Tensor, KeysAndValues, Tensor | None]:
        """Read (B, n, w) after `past`; return the same, keys and values, weights on the source."""
        y = self.norms[0](x)
        own = self.own.read(y)
        if past is not None:
            own = torch.cat([past[0], own[0]], 2), torch.cat([past[1], own[1]], 2)
        x, weights = x + self.dropout(self.own(y, own, mask)[0]), None
        if self.source is not None and source is not None:
            read, weights = self.source(self.norms[1](x), *source)
            x = x + self.dropout(read)
        return x + self.dropout(self.forward_layers(self.norms[2](x))), own, weights


class Encoder(nn.Module):
    """The source side: embedding, layers and a last normalization."""

    attends = False

    def __init__(self, types: int, settings: TransformerSettings) -> None:
        super().__init__()
        self.embedding = Embedding(types, settings)
        self.layers = nn.ModuleList(
            Layer(settings, self.attends) for _ in range(settings.layers)
        )
        self.norm = nn.LayerNorm(settings.width)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Map indices (B, m) to (B, m, w) and the mask of the padding (B, 1, 1, m)."""
        mask = (source == PADDING).unsqueeze(1).unsqueeze(2)
        x = self.embedding(source)
        for layer in self.layers:
            x, _, _ = layer(x, mask)
        return self.norm(x), mask


class Decoder(Encoder):
    """The target side: the same with attention to the source, and the layer before the softmax."""

    attends = True

    def __init__(self, types: int, settings: TransformerSettings) -> None:
        super().__init__(types, settings)
        self.output = PlainOutput(settings.width, types)
        nn.init.normal_(self.output.table, 0.0, settings.width**-0.5)
        nn.init.zeros_(self.output.bias)

    def read_source(self, encoded: Tensor) -> list[KeysAndValues]:
        """Return each layer's keys and values of the encoded source (B, m, w)."""
        sources = (layer.source for layer in self.layers)
        return [
            source.read(encoded) for source in sources if isinstance(source, Attention)
        ]

    def forward(  # type: ignore[override]
        self, previous: Tensor, encoded: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Read all tokens (B, n) at once: features (B, n, w) and each layer's weights."""
        n, attention = previous.shape[1], []
        later = torch.ones(n, n, dtype=torch.bool, device=previous.device).triu(1)
        x = self.embedding(previous)
        for layer, source in zip(
            self.layers, self.read_source(encoded[0]), strict=True
        ):
            x, _, weights = layer(x, later, source=(source, encoded[1]))
            attention.append(weights)
        return self.norm(x), attention


class Transformer(Network):
    """An encoder and a decoder of attention layers."""

    attends = True

    encoder: Encoder
    decoder: Decoder

    def __init__(
        self, settings: TransformerSettings, source_types: int, target_types: int
    ) -> None:
        super().__init__(
            Encoder(source_types, settings), Decoder(target_types, settings)
        )

    def encode(
        self, source: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return what the decoder reads of indices (B, m)."""
        encoded: tuple[Tensor, Tensor] = self.encoder(source)
        return encoded


class InferenceTransformer:
    """The network as a search runs it; in bf16 torch rounds the weights at each step."""

    def __init__(self, network: Transformer, precision: Precision) -> None:
        """Take a network for decoding in fp32 or bf16: `runs_onnx` of the settings is False."""
        self.network = network
        weight, bias = network.output.weight().detach(), network.output.bias.detach()
        self.output = LinearMap(weight, bias, precision)
        self.rounds = torch.autocast(
            weight.device.type, torch.bfloat16, precision == "bf16"
        )

    def start(self, source: Tensor, hypotheses: int) -> "State":
        """Encode padded source indices (B, m), and be ready to decode K hypotheses of each."""
        return State(self, source, hypotheses)


class State:
    """What is known of B * K hypotheses: the keys and values of their tokens and their sources."""

    def __init__(
        self, inference: InferenceTransformer, source: Tensor, hypotheses: int
    ) -> None:
        self._decoder, self._rounds = inference.network.decoder, inference.rounds
        self._hypotheses, self._length = hypotheses, 0
        with self._rounds:
            encoded, self._mask = inference.network.encode(source)
            self._source = self._decoder.read_source(encoded)
        self._past: list[KeysAndValues | None] = [None] * len(self._source)
        self._take_sources(torch.arange(len(source)).repeat_interleave(hypotheses))

    def step(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Read each hypothesis's last token (B, K): features (B, K, w) and attention (B, K, m)."""
        attention = []
        with self._rounds:
            x = self._decoder.embedding(previous.reshape(-1, 1), self._length)
            for number, layer in enumerate(self._decoder.layers):
                source = self._source[number], self._mask
                x, self._past[number], weights = layer(
                    x, None, self._past[number], source
                )
                attention.append(weights)
            x = self._decoder.norm(x)
        self._length += 1
        mean = torch.stack(attention).mean(0)
        return x.view(*previous.shape, -1), mean.view(*previous.shape, -1)

    def select(self, rows: Tensor) -> None:
        """Continue from other hypotheses of the same sentences: their sources stay."""
        self._past = [past and (past[0][rows], past[1][rows]) for past in self._past]

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences alone."""
        rows = torch.arange(len(self._mask), device=sentences.device)
        rows = rows.view(-1, self._hypotheses)[sentences].flatten()
        self.select(rows)
        self._take_sources(rows)

    def _take_sources(self, rows: Tensor) -> None:
        self._source = [(keys[rows], values[rows]) for keys, values in self._source]
        self._mask = self._mask[rows]


for_inference.register(Transformer, InferenceTransformer)
