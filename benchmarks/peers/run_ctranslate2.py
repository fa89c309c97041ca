"""CTranslate2 translates: a Transformer of random weights, of as many parameters as our network.

    python benchmarks/peers/run_ctranslate2.py --lines FILE --folder FOLDER [--beam N] [--batch N]
        [--alone] [--output N] [--threads N] [--isa NAME] [--parameters N --width N --types N]

The lines are tokens ``w0``, ``w1`` and so on, and outputs have ``--output`` tokens. It computes in
int8. Each thread translates batches of its own (``inter_threads``), which is faster than sharing
each batch, as it does by default. On processors of AMD it takes AVX2 where ``--isa AVX512`` can be
faster. Prints one JSON object (../sample.py).
"""

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from environment import enter

if __name__ == "__main__":
    enter(
        "ctranslate2",
        ("ctranslate2==4.8.5", "numpy==2.4.6", "PyYAML==6.0.3", "setuptools==80.9.0"),
    )
    if "--isa" in sys.argv:  # read when it is loaded
        os.environ["CT2_FORCE_CPU_ISA"] = sys.argv[sys.argv.index("--isa") + 1]

import ctranslate2
import numpy as np

from sample import sample

HEAD = 64
"""Width of an attention head."""

SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]


class Shape(NamedTuple):
    """A Transformer: so many layers on each side, four times as wide inside."""

    width: int
    layers: int
    types: int

    @property
    def parameters(self) -> int:
        """Weights: both tables, the output layer, and 12 and 16 squares of each layer."""
        return 3 * self.types * self.width + self.layers * 28 * self.width**2


def shape_of(parameters: int, width: int, types: int) -> Shape:
    """Return the Transformer that comes closest to so many parameters."""
    layers = (parameters - 3 * types * width) / (28 * width**2)
    return Shape(width, max(1, round(layers)), types)


def main() -> None:
    """Translate and print."""
    arguments = _arguments()
    shape = shape_of(arguments.parameters, arguments.width, arguments.types)
    if not arguments.folder.is_dir():
        write_model(arguments.folder, shape)
    translator = ctranslate2.Translator(
        str(arguments.folder),
        device="cpu",
        compute_type="int8",
        inter_threads=arguments.threads,
        intra_threads=1,
    )
    lines = [line.split() for line in arguments.lines.read_text("utf-8").splitlines()]

    def translate(lines: list[list[str]]) -> int:
        groups = [[one] for one in lines] if arguments.alone else [lines]
        for group in groups:
            found = translator.translate_batch(
                group,
                beam_size=arguments.beam,
                max_batch_size=arguments.batch,
                min_decoding_length=arguments.output,
                max_decoding_length=arguments.output,
            )
            assert {len(one.hypotheses[0]) for one in found} == {arguments.output}
        return len(lines)

    translate(lines[: 1 + len(lines) // 8])
    versions = {"CTranslate2": ctranslate2.__version__}
    sample(lambda: translate(lines), parameters=shape.parameters, versions=versions)


def write_model(folder: Path, shape: Shape) -> None:
    """Write a model of random weights."""
    heads = max(1, shape.width // HEAD)
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (shape.layers, shape.layers), heads
    )
    generator = np.random.default_rng(1)
    width, inner = shape.width, 4 * shape.width

    def linear(one: Any, outputs: int, inputs: int) -> None:
        one.weight = generator.normal(0, inputs**-0.5, (outputs, inputs)).astype(
            np.float32
        )
        one.bias = np.zeros(outputs, np.float32)

    for norm in _norms(spec):
        norm.gamma, norm.beta = np.ones(width, np.float32), np.zeros(width, np.float32)
    for side in (spec.encoder, spec.decoder):
        for layer in side.layer:
            linear(layer.self_attention.linear[0], 3 * width, width)
            linear(layer.self_attention.linear[1], width, width)
            linear(layer.ffn.linear_0, inner, width)
            linear(layer.ffn.linear_1, width, inner)
    for layer in spec.decoder.layer:
        for one, outputs in zip(
            layer.attention.linear, (width, 2 * width, width), strict=True
        ):
            linear(one, outputs, width)
    for table in (*spec.encoder.embeddings, spec.decoder.embeddings):
        table.weight = generator.normal(0, 0.1, (shape.types, width)).astype(np.float32)
    linear(spec.decoder.projection, shape.types, width)
    tokens = SPECIAL + [f"w{number}" for number in range(shape.types - len(SPECIAL))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = True
    spec.validate()
    folder.mkdir()
    spec.save(str(folder))


def _norms(spec: Any) -> Iterator[Any]:
    for side in (spec.encoder, spec.decoder):
        yield side.layer_norm
        for layer in side.layer:
            yield layer.self_attention.layer_norm
            yield layer.ffn.layer_norm
    for layer in spec.decoder.layer:
        yield layer.attention.layer_norm


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CTranslate2's speed of translation.")
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument(
        "--folder", type=Path, required=True, help="of the model, made if need be"
    )
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--alone", action="store_true", help="one sentence at a time")
    parser.add_argument(
        "--output", type=int, default=14, help="tokens of each translation"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--isa", help="instructions to take in place of those that it chooses"
    )
    parser.add_argument("--parameters", type=int, default=7_800_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--types", type=int, default=5_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
