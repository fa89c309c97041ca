"""The networks: what ``architecture`` of a model says, in config/models.yaml and in model files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, SerializeAsAny, ValidationInfo, WrapValidator
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
from convs2s.files.limits import LARGEST_KERNEL, LARGEST_WIDTH, MOST_LAYERS, MOST_POSITIONS

StackDepth = Annotated[int, Field(ge=1, le=MOST_LAYERS)]
Width = Annotated[int, Field(ge=1, le=LARGEST_WIDTH)]


@dataclass(frozen=True)
class Layer:
    """One convolutional block: its number of channels d and its kernel width k."""

    width: int
    kernel: int


class Blocks(Section):
    """A stack of equal convolutional blocks."""

    layers: StackDepth
    """Number of equal blocks."""
    width: Width
    """Hidden size d: channels of a block's input and output."""
    kernel: Annotated[int, Field(ge=1, le=LARGEST_KERNEL)]
    """Kernel width k in tokens."""


class Positions(Section):
    """Learned absolute position embeddings."""

    source: bool = True
    """Whether source tokens have position embeddings."""
    target: bool = True
    """Whether target tokens have position embeddings."""
    maximum: Annotated[int, Field(ge=1, le=MOST_POSITIONS)] = 1024
    """Number of positions, the end token's included; a training on a longer pair is refused at its
    start. clean.tokens of a task drops such pairs before."""

    def rows(self, side: str) -> int | None:
        """Return the rows of a side's table of positions; None without positions."""
        return self.maximum if getattr(self, side) else None


class VocabularySelection(Section):
    """Which target tokens the output layer scores at a time."""

    frequent: NonNegativeInt = 500
    """Most frequent target words that are always scored."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 100
    """Most target words that a source word brings in."""


def _expanded(stacks: tuple[Blocks, ...]) -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for stack in stacks:
        layers += [Layer(stack.width, stack.kernel)] * stack.layers
    return tuple(layers)


def _check_depth(stacks: tuple[Blocks, ...]) -> tuple[Blocks, ...]:
    if sum(stack.layers for stack in stacks) > MOST_LAYERS:
        raise PydanticCustomError("layers", f"expected at most {MOST_LAYERS} blocks in all")
    return stacks


Stacks = Annotated[
    Items[Blocks], Field(min_length=1, max_length=MOST_LAYERS), AfterValidator(_check_depth)
]


class NetworkSettings(Section):
    """The settings of a network, and what plans ask of them; extensions add subclasses."""

    has_attention: ClassVar[bool] = True  # which unknown-word replacement and its plots need
    runs_onnx: ClassVar[bool] = False  # whether ``convs2s.models.onnx_graphs`` has its graphs

    kind: str
    build: ClassVar[Callable[..., Any]]  # of an extension: (source_types, target_types) -> Network

    @property
    def blocks(self) -> tuple[Layer, ...]:
        """The convolutional blocks of both sides, the encoder's first, if there are any."""
        return ()

    @property
    def selection(self) -> VocabularySelection | None:
        """Which target tokens the output layer, then a lookup table, scores; None: all."""
        return getattr(self, "vocabulary_selection", None)

    def check(self, where: str) -> None:
        """Check what no single key says; a UserError begins with ``where``."""

    def count_parameters(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters for vocabularies of these sizes; 0: it is not known."""
        return 0

    def count_embeddings(self, source_types: int, target_types: int) -> int:
        """Return how many of the parameters are looked up, and multiply no token."""
        return 0

    def code(self) -> dict[str, str]:
        """Return a digest of an extension's code, with which a training begins anew, as "code"."""
        if type(self).__module__ == __name__:
            return {}
        return {"code": str(digest_of_extension("ARCHITECTURES", self.kind))}


class ConvS2SArchitecture(NetworkSettings):
    """The convolutional network (Gehring et al. 2017), all but its vocabularies."""

    runs_onnx: ClassVar[bool] = True

    kind: Literal["convs2s"] = "convs2s"
    """Convolutions with attention (Gehring et al. 2017)."""
    embedding: Width = 512
    """Width of the token and position embeddings."""
    output_embedding: Width = 512
    """Width of the decoder's output just before the softmax layer."""
    encoder: Stacks
    """Stacks of equal convolutional blocks, bottom first."""
    decoder: Stacks
    """Stacks of equal convolutional blocks, bottom first."""
    attention: (
        Annotated[
            Literal["all"], Expecting("expected all, or a list of block numbers such as [1, 3, 5]")
        ]
        | SomeDistinctItems[PositiveInt]
    ) = "all"
    """Decoder blocks that attend to the source: all, or a list, from 1 at the bottom (table 5)."""
    attention_weights: Literal["shared"] | None = None
    """shared: the attending blocks, of equal width then, have one pair of maps between their width
    and the embeddings', as in a published tutorial; null: each has its own (section 3.3)."""
    positions: Positions = Positions()
    """Learned absolute position embeddings (section 3.1, table 4)."""
    dropout: Probability = 0.1
    """Probability that dropout zeroes a value of embeddings and of layers' inputs."""
    vocabulary_selection: VocabularySelection | None = None
    """Which target tokens the output layer scores at a time, for word models with a large
    vocabulary (section 5.4): the most frequent ones and, of each source word, those that the
    alignment offers; in training those of the references as well. The layer is then a lookup table
    without weight normalization. null scores all."""
    gradient_scaling: Literal["paper", "fairseq", "none"] = "paper"
    """How the encoder's gradients are scaled: paper divides those of its parameters by the number
    of attention layers (section 3.4), fairseq divides the gradient that enters its stack by twice
    that number, none leaves them."""

    @property
    def encoder_layers(self) -> tuple[Layer, ...]:
        """The encoder's blocks one by one, bottom first."""
        return _expanded(self.encoder)

    @property
    def decoder_layers(self) -> tuple[Layer, ...]:
        """The decoder's blocks one by one, bottom first."""
        return _expanded(self.decoder)

    @property
    def attends(self) -> tuple[bool, ...]:
        """For each block of the decoder, whether it attends to the source."""
        numbers = range(1, len(self.decoder_layers) + 1)
        return tuple(self.attention == "all" or number in self.attention for number in numbers)

    @property
    def attending_layers(self) -> list[Layer]:
        """The decoder's blocks that attend to the source."""
        return list(compress(self.decoder_layers, self.attends))

    @property
    def blocks(self) -> tuple[Layer, ...]:
        """The convolutional blocks of both sides, the encoder's first."""
        return self.encoder_layers + self.decoder_layers

    def check(self, where: str) -> None:
        """Check that ``attention`` and ``attention_weights`` fit the decoder's blocks."""
        widths = sorted({block.width for block in self.attending_layers})
        if self.attention_weights == "shared" and len(widths) > 1:
            raise UserError(
                f"{where}.attention_weights: blocks of {' and '.join(map(str, widths))} "
                "channels cannot share them: give the attending blocks one width"
            )
        layers = len(self.decoder_layers)
        last = 0 if self.attention == "all" else max(self.attention)
        if last > layers:
            raise UserError(f"{where}.attention: names block {last}, but the decoder has {layers}")

    def count_parameters(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters for vocabularies of these sizes."""
        embedding = self.embedding
        maps: list[tuple[int, int]] = []  # inputs and outputs of each linear map or convolution
        for stack, top in (
            (self.encoder_layers, embedding),
            (self.decoder_layers, self.output_embedding),
        ):
            below = stack[0].width
            maps.append((embedding, below))
            for layer in stack:
                maps.append((layer.kernel * below, 2 * layer.width))
                if below != layer.width:
                    maps.append((below, layer.width))
                below = layer.width
            maps.append((below, top))
        attending = self.attending_layers
        if self.attention_weights == "shared":
            attending = attending[:1]
        for layer in attending:
            maps.append((layer.width, embedding))
            maps.append((embedding, layer.width))
        # Beside its weight, each output of a map has a norm and a bias; of a lookup table a bias.
        of_maps = sum((inputs + 2) * outputs for inputs, outputs in maps)
        of_type = self.output_embedding + (1 if self.selection else 2)
        embedded = self.count_embeddings(source_types, target_types)
        return of_maps + of_type * target_types + embedded

    def count_embeddings(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters in the tables of tokens and positions."""
        positions = sum(self.positions.rows(side) or 0 for side in ("source", "target"))
        return self.embedding * (source_types + target_types + positions)


class LstmArchitecture(NetworkSettings):
    """The LSTM network (Sutskever et al. 2014), all but its vocabularies."""

    has_attention: ClassVar[bool] = False  # the decoder sees of the source its final state alone

    kind: Literal["lstm"]
    """LSTM layers without attention (Sutskever et al. 2014)."""
    layers: StackDepth = 4
    """Layers of the encoder and of the decoder."""
    cells: Width = 1000
    """Memory cells of a layer."""
    embedding: Width = 1000
    """Width of the token embeddings."""
    dropout: Probability = 0.0
    """Probability that dropout zeroes a value of embeddings or layers' outputs; 0 in the paper."""
    initialization: PositiveFloat = 0.08
    """Every parameter is drawn uniformly between minus this and this."""
    reverse_source: bool = True
    """Whether the encoder reads the source reversed, the end token last (section 3.3 there)."""

    def count_parameters(self, source_types: int, target_types: int) -> int:
        """Return the number of parameters for vocabularies of these sizes."""
        inputs = self.embedding + (self.layers - 1) * self.cells  # of all layers of a side
        gates = 4 * self.cells  # of a layer; each has two biases
        of_layers = 2 * gates * (inputs + self.layers * (self.cells + 2))
        embeddings = (source_types + target_types) * self.embedding
        return of_layers + embeddings + target_types * (self.cells + 1)


KINDS = "convs2s", "lstm"
"""The kinds of network of this package; extensions add others."""


def _by_kind(
    stated: object, read_own: Callable[[object], Any], info: ValidationInfo[bool | None]
) -> Any:
    """Read the settings of a network by their kind; convs2s where none is stated."""
    if not isinstance(stated, dict):
        return stated if isinstance(stated, NetworkSettings) else read_own(stated)
    kind = str(stated.get("kind", "convs2s"))[:100]  # a message shows it
    section = check_added("architecture", "ARCHITECTURES", kind, KINDS)
    if section is None:
        return read_own({"kind": "convs2s"} | stated)
    return validated(section, stated, f"architecture of kind {kind}", lax=bool(info.context))


Architecture: TypeAlias = Annotated[
    Annotated[ConvS2SArchitecture | LstmArchitecture, Field(discriminator="kind")],
    WrapValidator(_by_kind),
    SerializeAsAny(),
]
"""A network of any kind, of this package or of an extension."""


class _Stated(Section):
    """What `parse_architecture` reads, under the name that messages give it."""

    architecture: Architecture


def parse_architecture(stated: Mapping[str, object], where: str = "model file") -> Architecture:
    """Return the network that a model file states; a UserError begins with ``where``."""
    architecture: Architecture = validated(_Stated, {"architecture": stated}, where).architecture
    architecture.check(f"{where}: architecture")
    return architecture
