"""The key ``architecture`` of a model, in config/models.yaml and in model files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    SerializeAsAny,
    ValidationInfo,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from convs2s.config.extensions import check_added, digest_of_extension
from convs2s.config.messages import validated
from convs2s.config.section import (
    Expecting,
    Items,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    Probability,
    Section,
    SomeDistinctItems,
)
from convs2s.errors import UserError
from convs2s.files.limits import (
    LARGEST_KERNEL,
    LARGEST_WIDTH,
    MOST_LAYERS,
    MOST_POSITIONS,
)

StackDepth = Annotated[int, Field(ge=1, le=MOST_LAYERS)]
Width = Annotated[int, Field(ge=1, le=LARGEST_WIDTH)]


@dataclass(frozen=True)
class Layer:
    """One convolutional block with ``width`` channels (d) and a kernel of ``kernel`` tokens (k)."""

    width: int
    kernel: int


class Blocks(Section):
    """A stack of convolutional blocks with the same width and kernel."""

    layers: StackDepth
    """Number of blocks in the stack."""
    width: Width
    """Hidden size d: number of channels of a block's input and output."""
    kernel: Annotated[int, Field(ge=1, le=LARGEST_KERNEL)]
    """Kernel width k in tokens."""


class Positions(Section):
    """Learned absolute position embeddings."""

    source: bool = True
    """Whether source tokens have position embeddings."""
    target: bool = True
    """Whether target tokens have position embeddings."""
    maximum: Annotated[int, Field(ge=1, le=MOST_POSITIONS)] = 1024
    """Number of positions, including that of the end token. A training stops with an error before
    its first update if a sentence of its data is longer. clean.tokens of a task drops such pairs
    when the text is prepared."""

    def rows(self, side: str) -> int | None:
        """Return the number of position embeddings of a side; None if the side has none.

        ``side`` is "source" or "target".
        """
        return self.maximum if getattr(self, side) else None


class VocabularySelection(Section):
    """Which target tokens the output layer scores for a batch."""

    frequent: NonNegativeInt = 500
    """Number of the most frequent target words, which are always scored."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 100
    """Maximum number of target words that are scored in addition for each source word."""


def _expanded(stacks: tuple[Blocks, ...]) -> tuple[Layer, ...]:
    """Return the blocks of all stacks, one entry for each, the lowest first."""
    layers: list[Layer] = []
    for stack in stacks:
        layers += [Layer(stack.width, stack.kernel)] * stack.layers
    return tuple(layers)


def _check_depth(stacks: tuple[Blocks, ...]) -> tuple[Blocks, ...]:
    if sum(stack.layers for stack in stacks) > MOST_LAYERS:
        raise PydanticCustomError(
            "layers", f"expected at most {MOST_LAYERS} blocks in all"
        )
    return stacks


Stacks = Annotated[
    Items[Blocks],
    Field(min_length=1, max_length=MOST_LAYERS),
    AfterValidator(_check_depth),
]


class NetworkSettings(Section):
    """The settings of a network of any kind, and its properties that are known before it is built.

    An extension adds a kind of network as a subclass.
    """

    # Unknown-word replacement and attention plots need a network with attention.
    has_attention: ClassVar[bool] = True
    # Whether ``convs2s.models.onnx_graphs`` can build graphs of the network.
    runs_onnx: ClassVar[bool] = False

    kind: str
    # Only extensions define this method: (source_types, target_types) -> Network.
    build: ClassVar[Callable[..., Any]]

    @property
    def blocks(self) -> tuple[Layer, ...]:
        """The convolutional blocks of encoder and decoder, in this order; empty without blocks."""
        return ()

    @property
    def selection(self) -> VocabularySelection | None:
        """The key ``vocabulary_selection`` if this kind has it; None if all tokens are scored."""
        return getattr(self, "vocabulary_selection", None)

    def check(self, where: str) -> None:
        """Check that the keys fit each other.

        Raises:
            UserError: Two keys do not fit. The message begins with ``where``.
        """

    def count_parameters(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters for vocabularies of these sizes; 0 if it is not known."""
        return 0

    def count_embeddings(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters in lookup tables, which no matrix product uses."""
        return 0

    def code(self) -> dict[str, str]:
        """Return {"code": digest of the extension's code}; {} for the networks of this package.

        The digest is one of the settings that identify a training. When the code changes, the
        training therefore starts again from the beginning.
        """
        if type(self).__module__ == __name__:
            return {}
        return {"code": str(digest_of_extension("ARCHITECTURES", self.kind))}


class ConvS2SArchitecture(NetworkSettings):
    """The convolutional network (Gehring et al. 2017), without the sizes of its vocabularies."""

    runs_onnx: ClassVar[bool] = True

    kind: Literal["convs2s"] = "convs2s"
    """Convolutions with attention (Gehring et al. 2017)."""
    embedding: Width = 512
    """Width of the token and position embeddings."""
    output_embedding: Width = 512
    """Width of the decoder's output that enters the softmax layer."""
    encoder: Stacks
    """The encoder's convolutional blocks, as a list of stacks of equal blocks, the lowest stack
    first."""
    decoder: Stacks
    """The decoder's convolutional blocks, as a list of stacks of equal blocks, the lowest stack
    first."""
    attention: (
        Annotated[
            Literal["all"],
            Expecting("expected all, or a list of block numbers such as [1, 3, 5]"),
        ]
        | SomeDistinctItems[PositiveInt]
    ) = "all"
    """Decoder blocks that attend to the source: all, or a list of their numbers, where 1 is the
    lowest block (table 5)."""
    attention_weights: Literal["shared"] | None = None
    """shared: all attending blocks use one pair of linear maps between their width and that of the
    embeddings, as in a published tutorial; the blocks must have the same width. null: each block
    has a pair of maps (section 3.3)."""
    positions: Positions = Positions()
    """Learned absolute position embeddings (section 3.1, table 4)."""
    dropout: Probability = 0.1
    """Probability with which dropout sets a value of the embeddings or of a block's input to 0."""
    vocabulary_selection: VocabularySelection | None = None
    """Which target words the output layer scores for a batch, for word models with a large
    vocabulary (section 5.4): the most frequent words and, for each source word, the words that the
    alignment pairs with it most often; in training also the words of the references. The output
    layer is then a lookup table without weight normalization. null: all words are scored."""
    gradient_scaling: Literal["paper", "fairseq", "none"] = "paper"
    """How the encoder's gradients are scaled. paper divides the gradients of the encoder's
    parameters by the number of attention layers (section 3.4). fairseq divides the gradient that
    enters the encoder's stack by twice that number. none does not scale them."""

    @property
    def encoder_layers(self) -> tuple[Layer, ...]:
        """The encoder's blocks, one entry for each, the lowest first."""
        return _expanded(self.encoder)

    @property
    def decoder_layers(self) -> tuple[Layer, ...]:
        """The decoder's blocks, one entry for each, the lowest first."""
        return _expanded(self.decoder)

    @property
    def attends(self) -> tuple[bool, ...]:
        """For each block of the decoder, the lowest first, whether it attends to the source."""
        numbers = range(1, len(self.decoder_layers) + 1)
        return tuple(
            self.attention == "all" or number in self.attention for number in numbers
        )

    @property
    def attending_layers(self) -> list[Layer]:
        """The decoder's blocks that attend to the source, the lowest first."""
        return list(compress(self.decoder_layers, self.attends))

    @property
    def blocks(self) -> tuple[Layer, ...]:
        """The convolutional blocks of encoder and decoder, in this order."""
        return self.encoder_layers + self.decoder_layers

    def check(self, where: str) -> None:
        """Check that ``attention`` and ``attention_weights`` fit the decoder's blocks.

        Raises:
            UserError: One of them does not. The message begins with ``where``.
        """
        widths = sorted({block.width for block in self.attending_layers})
        if self.attention_weights == "shared" and len(widths) > 1:
            raise UserError(
                f"{where}.attention_weights: blocks of {' and '.join(map(str, widths))} "
                "channels cannot share them: give the attending blocks one width"
            )
        if self.attention == "all":
            return
        layers = len(self.decoder_layers)
        last = max(self.attention)
        if last > layers:
            raise UserError(
                f"{where}.attention: names block {last}, but the decoder has {layers}"
            )

    def count_parameters(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters for vocabularies of these sizes."""
        embedding = self.embedding
        # Number of inputs and outputs of each linear map or convolution.
        maps: list[tuple[int, int]] = []
        for layers, output_width in (
            (self.encoder_layers, embedding),
            (self.decoder_layers, self.output_embedding),
        ):
            width_below = layers[0].width
            maps.append((embedding, width_below))
            for layer in layers:
                # A gated linear unit needs a value and a gate for each channel.
                maps.append((layer.kernel * width_below, 2 * layer.width))
                if width_below != layer.width:
                    # The residual connection maps the input to the width of the output.
                    maps.append((width_below, layer.width))
                width_below = layer.width
            maps.append((width_below, output_width))
        attending = self.attending_layers
        if self.attention_weights == "shared":
            attending = attending[:1]
        for layer in attending:
            maps.append((layer.width, embedding))
            maps.append((embedding, layer.width))
        # Each output of a map has a weight for each input, a norm (weight normalization) and a
        # bias.
        map_parameters = 0
        for inputs, outputs in maps:
            map_parameters += (inputs + 2) * outputs
        # The softmax layer is such a map, but it has no norms if the model selects its vocabulary.
        norm_and_bias = 1 if self.selection else 2
        softmax_parameters = (self.output_embedding + norm_and_bias) * target_types
        embeddings = self.count_embeddings(source_types, target_types)
        return map_parameters + softmax_parameters + embeddings

    def count_embeddings(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters of the token and position embeddings."""
        positions = 0
        for side in ("source", "target"):
            positions += self.positions.rows(side) or 0
        return self.embedding * (source_types + target_types + positions)


class LstmArchitecture(NetworkSettings):
    """The LSTM network (Sutskever et al. 2014), without the sizes of its vocabularies."""

    # The decoder reads nothing of the source but the encoder's final state.
    has_attention: ClassVar[bool] = False

    kind: Literal["lstm"]
    """LSTM layers without attention (Sutskever et al. 2014)."""
    layers: StackDepth = 4
    """Number of layers of the encoder, and of the decoder."""
    cells: Width = 1000
    """Memory cells of each layer."""
    embedding: Width = 1000
    """Width of the token embeddings."""
    dropout: Probability = 0.0
    """Probability with which dropout sets a value of the embeddings or of a layer's output to 0.
    The paper uses no dropout."""
    initialization: PositiveFloat = 0.08
    """Every parameter is drawn uniformly from the range between minus this value and this
    value."""
    reverse_source: bool = True
    """Whether the encoder reads the source's words in reverse order, with the end token last
    (Sutskever et al. 2014, section 3.3)."""

    def count_parameters(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters for vocabularies of these sizes."""
        # The sum of the layers' input widths, which is the same for the encoder and the decoder.
        inputs = self.embedding + (self.layers - 1) * self.cells
        gates = 4 * self.cells  # number of gates of a layer
        # A gate has a weight for each input and each of the layer's cells, and two biases. The
        # first 2 is for the encoder and the decoder.
        layer_parameters = 2 * gates * (inputs + self.layers * (self.cells + 2))
        embeddings = (source_types + target_types) * self.embedding
        softmax_parameters = target_types * (self.cells + 1)
        return layer_parameters + embeddings + softmax_parameters


class RnnArchitecture(NetworkSettings):
    """A recurrent network with attention, without the sizes of its vocabularies."""

    kind: Literal["rnn"]
    """Recurrent layers with attention (Bahdanau et al. 2015, Luong et al. 2015)."""
    cell: Literal["gru", "lstm"] = "gru"
    """What the layers are made of: gated recurrent units or LSTM cells."""
    attention: Literal["bahdanau", "luong"] = "bahdanau"
    """bahdanau: the context is an input of the decoder's bottom layer. luong: it goes only to the
    output layer, which trains faster."""
    layers: StackDepth = 1
    """Number of layers of the encoder, which reads in both directions, and of the decoder."""
    cells: Width = 1000
    """Units of each layer and direction."""
    embedding: Width = 620
    """Width of the token embeddings and of the output layer's input."""
    dropout: Probability = 0.0
    """Probability with which dropout sets a value of the embeddings, of a layer's output or of the
    output layer's input to 0."""

    def count_parameters(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters for vocabularies of these sizes."""
        cells = self.cells
        # Number of gates of a layer.
        gates = {"gru": 3, "lstm": 4}[self.cell] * cells
        # Sums of the input widths of the layers. The encoder has layers of both directions, and
        # each of them reads both directions of the layer below.
        encoder_inputs = 2 * (self.embedding + (self.layers - 1) * 2 * cells)
        decoder_inputs = self.embedding + (self.layers - 1) * cells
        # The readout computes the output layer's input from the decoder's output (cells) and the
        # context (2 * cells).
        readout_inputs = 3 * cells
        attention = (2 * cells + 1) * cells  # the map to the keys
        if self.attention == "bahdanau":
            # The bottom layer also reads the context, and the readout also the embedding.
            decoder_inputs += 2 * cells
            readout_inputs += self.embedding
            attention += (cells + 1) * cells + cells  # the map of the query; the scores
        # A gate has a weight for each input and each of the layer's cells, and two biases. 3: the
        # two directions of the encoder, and the decoder.
        inputs = encoder_inputs + decoder_inputs
        layers = gates * (inputs + 3 * self.layers * (cells + 2))
        first_states = self.layers * (cells + 1) * cells
        readout = (readout_inputs + 1) * self.embedding
        softmax = target_types * (self.embedding + 1)
        embeddings = self.count_embeddings(source_types, target_types)
        return layers + first_states + attention + readout + softmax + embeddings

    def count_embeddings(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters of the token embeddings."""
        return self.embedding * (source_types + target_types)


KINDS = "convs2s", "lstm", "rnn"
"""The kinds of network that this package has; extensions add others."""


def _by_kind(
    stated: object,
    read_built_in: Callable[[object], Any],
    info: ValidationInfo[bool | None],
) -> Any:
    """Read the settings of a network with the class of its kind, and check that its keys fit.

    The kind is convs2s if the settings state none. ``read_built_in`` is pydantic's validator for
    the kinds of this package. The context of ``info`` says whether texts may stand for other values
    (`convs2s.config.messages.validated`).
    """
    if isinstance(stated, NetworkSettings):
        return stated
    if not isinstance(stated, dict):
        # This raises pydantic's error for a value that is not a mapping.
        return read_built_in(stated)
    # Shortened, because a message may show it.
    kind = str(stated.get("kind", "convs2s"))[:100]
    section = check_added("architecture", "ARCHITECTURES", kind, KINDS)
    if section is None:
        network = read_built_in({"kind": "convs2s"} | stated)
    else:
        strict = False if info.context else None
        network = section.model_validate(stated, strict=strict, context=info.context)
    network.check("architecture")
    return network


Architecture: TypeAlias = Annotated[
    Annotated[
        ConvS2SArchitecture | LstmArchitecture | RnnArchitecture,
        Field(discriminator="kind"),
    ],
    WrapValidator(_by_kind),
    SerializeAsAny(),
]
"""The settings of a network, of a kind of this package or of an extension."""


class _Stated(Section):
    """A mapping with the key ``architecture``, so that messages name this key."""

    architecture: Architecture


def parse_architecture(
    stated: Mapping[str, object], where: str = "model file"
) -> Architecture:
    """Return the architecture that a model file states.

    Raises:
        UserError: It is not valid; the message begins with ``where``.
    """
    return validated(_Stated, {"architecture": stated}, where).architecture
