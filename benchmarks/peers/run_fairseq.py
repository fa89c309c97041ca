"""fairseq trains, or translates: ConvS2S in its own implementation, in fp32.

    python benchmarks/peers/run_fairseq.py training --source FILE --target FILE [--updates N]
        [--tokens N]
    python benchmarks/peers/run_fairseq.py generation --source FILE [--beam N] [--batch N]
        [--output N]

Both take the network: ``--encoder``, ``--decoder`` (a list of widths and kernels in Python, as
fairseq has it), ``--embedding``, ``--output-embedding``, ``--types``; and ``--threads``. Lines are
tokens ``w0``, ``w1`` and so on. A training makes updates by fairseq's own ``Trainer``, with its
order of the batches, Nesterov's momentum and clipping; generation is by its ``SequenceGenerator``
with the weights' normalization taken out beforehand. Prints one JSON object (../sample.py).
"""

import argparse
import dataclasses
import functools
import os
from pathlib import Path
from typing import Any

from environment import enter

# As here: waiting is no processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if __name__ == "__main__":
    enter(
        "fairseq",
        (
            "fairseq==0.12.2",
            "antlr4-python3-runtime==4.8",
            "bitarray==3.4.2",
            "hydra-core==1.0.7",
            "omegaconf==2.0.6",
        ),
        # Newer ones refuse the metadata of omegaconf, and have no pkg_resources for hydra.
        first=("pip==23.2.1", "setuptools==80.9.0", "wheel==0.45.1"),
        torch=True,
    )

import torch

# Since Python 3.11 a default has to have a hash, which fairseq's sections do not have.
plain = dataclasses.dataclass
dataclasses.dataclass = functools.partial(plain, unsafe_hash=True)

import fairseq  # noqa: E402
from fairseq import options  # noqa: E402
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset  # noqa: E402
from fairseq.dataclass.utils import convert_namespace_to_omegaconf  # noqa: E402
from fairseq.sequence_generator import SequenceGenerator  # noqa: E402
from fairseq.tasks.translation import TranslationTask  # noqa: E402
from fairseq.trainer import Trainer  # noqa: E402

from sample import sample  # noqa: E402

dataclasses.dataclass = plain

WARM_UP = 2
"""Updates."""


def main() -> None:
    """Train or translate, and print."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    dictionary = _dictionary(arguments.types)
    settings = _settings(arguments)
    task = TranslationTask(settings.task, dictionary, dictionary)
    model = task.build_model(settings.model)
    versions = {"fairseq": fairseq.__version__, "torch": torch.__version__}
    parameters = sum(one.numel() for one in model.parameters())
    work = {"training": _training, "generation": _generation}[arguments.work]
    sample(
        work(arguments, settings, task, model), parameters=parameters, versions=versions
    )


def _dictionary(types: int) -> Any:
    dictionary = Dictionary()
    for number in range(types - len(dictionary)):
        dictionary.add_symbol(f"w{number}")
    return dictionary


def _settings(arguments: argparse.Namespace) -> Any:
    """Return what fairseq-train would make of its command line."""
    embedding = arguments.embedding
    stated = {
        "arch": "fconv",
        "task": "translation",
        "source-lang": "en",
        "target-lang": "de",
        "encoder-layers": arguments.encoder,
        "decoder-layers": arguments.decoder,
        "encoder-embed-dim": embedding,
        "decoder-embed-dim": embedding,
        "decoder-out-embed-dim": arguments.output_embedding,
        "dropout": 0.2,
        "criterion": "cross_entropy",
        "optimizer": "nag",
        "momentum": 0.99,
        "lr": 0.25,
        "lr-scheduler": "fixed",
        "clip-norm": 0.1,
        "max-tokens": arguments.tokens,
        "num-workers": 0,
        "seed": 1,
    }
    words = [
        word for name, value in stated.items() for word in (f"--{name}", str(value))
    ]
    parser = options.get_training_parser()
    namespace = options.parse_args_and_arch(parser, ["data", "--cpu", *words])
    return convert_namespace_to_omegaconf(namespace)


def _training(
    arguments: argparse.Namespace, settings: Any, task: Any, model: Any
) -> Any:
    """Return the work: updates, from the start of the first epoch; it returns target tokens."""
    read = functools.partial(_rows, dictionary=task.source_dictionary)
    source, target = read(arguments.source), read(arguments.target)
    sizes = [[len(row) for row in side] for side in (source, target)]
    task.datasets["train"] = LanguagePairDataset(
        ListDataset(source, sizes[0]),
        sizes[0],
        task.source_dictionary,
        ListDataset(target, sizes[1]),
        sizes[1],
        task.target_dictionary,
    )
    trainer = Trainer(settings, task, model, task.build_criterion(settings.criterion))
    batches = trainer.get_train_iterator(1, load_dataset=False).next_epoch_itr(
        shuffle=True
    )

    def update(count: int) -> int:
        made = [next(batches) for _ in range(count)]
        for batch in made:
            trainer.train_step([batch])
        return sum(batch["ntokens"] for batch in made)

    update(WARM_UP)
    return functools.partial(update, arguments.updates)


def _generation(
    arguments: argparse.Namespace, settings: Any, task: Any, model: Any
) -> Any:
    """Return the work: translations of all lines; it returns their number."""
    model.eval()
    model.make_generation_fast_()
    length = arguments.output
    generator = SequenceGenerator(
        *([model], task.target_dictionary),
        beam_size=arguments.beam,
        max_len_a=0,
        max_len_b=length,
        min_len=length,
    )
    rows = _rows(arguments.source, task.source_dictionary)
    data = LanguagePairDataset(
        ListDataset(rows, list(map(len, rows))),
        list(map(len, rows)),
        task.source_dictionary,
    )
    size = arguments.batch
    batches = [
        data.collater([data[row] for row in range(start, min(start + size, len(rows)))])
        for start in range(0, len(rows), size)
    ]

    def translate(batches: list[Any]) -> int:
        found = [one for batch in batches for one in generator.generate([model], batch)]
        assert {len(one[0]["tokens"]) for one in found} == {length + 1}
        return len(found)

    translate(batches[:1])
    return functools.partial(translate, batches)


def _rows(path: Path, dictionary: Any) -> list[Any]:
    lines = path.read_text("utf-8").splitlines()
    return [
        dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="fairseq's speed.")
    parser.add_argument("work", choices=("training", "generation"))
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--tokens", type=int, default=4000, help="padded, of an update")
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument(
        "--output", type=int, default=14, help="tokens of each translation"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--encoder", default="[(256, 3)] * 4")
    parser.add_argument("--decoder", default="[(256, 3)] * 3")
    parser.add_argument("--embedding", type=int, default=256)
    parser.add_argument("--output-embedding", type=int, default=256)
    parser.add_argument("--types", type=int, default=5_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
