"""Command lines that nobody would type: options of all commands, with values of any kind."""

import json
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from hypothesis import strategies as st

from convs2s.cli.main import main
from convs2s.errors import UserError
from tests.faults.fuzzing.damage import HUGE, Draw
from tests.faults.fuzzing.readers import Reader

_WORDS = [
    "",
    " ",
    "x",
    "nan",
    "inf",
    "-inf",
    "é\u2028",
    "a=b",
    "--",
    "-",
    "x" * 5000,
    "en",
    "0.5",
]
_USAGE = 2
"""The exit code of argparse, which says in its own words what it did not expect."""


def option_reader(samples: Path, place: Path) -> Reader:
    """Return what runs the commands; the input is the command line as a list in JSON."""
    folder = place / "commands"
    (folder / "out").mkdir(parents=True, exist_ok=True)

    def read(path: Path) -> None:
        arguments = json.loads(path.read_text("utf-8", "surrogatepass"))
        with (
            chdir(folder),
            (samples / "text").open() as given,
            patch.object(sys, "stdin", given),
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
        ):
            _run(arguments)

    files = sorted(str(one) for one in samples.iterdir())
    inputs = _command_lines(samples, files).map(lambda one: json.dumps(one).encode())
    return Reader("options", place / "arguments.json", inputs, read, 2, named="")


def _run(arguments: list[str]) -> None:
    """Run a command; a line for the user is raised as what it was made of."""
    try:
        main(arguments)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            raise UserError(ended.code) from ended.__context__
        if ended.code == _USAGE:
            raise UserError("usage") from None
        if ended.code not in (None, 0):
            raise RuntimeError(f"exit code {ended.code}") from None


_Commands = dict[str, tuple[list[str], dict[str, list[str]]]]


def _commands(samples: Path) -> _Commands:
    """Return sound arguments of each command, and options with what may be said after them."""
    text, model, nbest = (
        str(samples / name) for name in ("text", "run/model.safetensors", "list.nbest")
    )
    threads = {"--threads": ["1"], "--device": ["cpu"]}
    search = {
        "--beam": ["2"],
        "--length-penalty": ["1"],
        "--maximum-length.offset": ["9"],
    }
    search |= {
        "--batch-tokens": ["99"],
        "--batch-sentences": ["3"],
        "--precision": ["fp32"],
    }
    search |= {"--unknown-penalty": ["0"], "--minimum-length": ["1"], "--n-best": ["1"]}
    pairs = {
        "--source": [text],
        "--target": [text],
        "--n-best": [nbest],
        "--feature": ["A"],
    }
    train = {"--settings": [str(samples / "settings.json")], "--seed": ["1"]}
    train |= {
        "--output": ["out/m", "typo/m"],
        "--time-limit": ["1"],
        "--dictionary": [text],
    }
    rouge = {
        "--reference": [text],
        "--samples": ["9"],
        "--bytes": ["75"],
        "--exceptions": [text],
    }
    commands: _Commands = {
        "translate": (
            [model],
            {**threads, **search, "--input": [text], "--output": ["out"]},
        ),
        "train": ([str(samples / "task")], {**threads, **train}),
        "score bleu": (
            ["--reference", text],
            {"--reference": [text], "--lowercase": []},
        ),
        "score rouge": ([text], rouge),
        "score compare": ([text, text, "--reference", text], {"--tokenized": []}),
        "compare-outputs": (
            [text, text, "--reference", text],
            {"--most": ["9"], "--html": []},
        ),
        "attention": ([model, "w1"], {"--beam": ["2"]}),
        "score-pairs": ([model], {**threads, **pairs, "--length-penalty": ["1"]}),
        "card": ([model], {}),
    }
    return commands | _commands_of_files(samples)


def _commands_of_files(samples: Path) -> _Commands:
    """Return those of the commands that read no model."""
    text, nbest = str(samples / "text"), str(samples / "list.nbest")
    types = {
        "--source-dictionary": [text],
        "--target-dictionary": [text],
        "--output": ["m"],
    }
    return {
        "score oracle": ([nbest], {"--reference": [text]}),
        "rerank": (
            [nbest],
            {"--feature": ["LogLikelihood"], "--n-best": [], "--tokenized": []},
        ),
        "tokenize": ([], {"--language": ["en"], "--preparation": ["moses_test"]}),
        "detokenize": ([], {"--language": ["en"]}),
        "import fairseq": (
            [str(samples / "model.pt")],
            {**types, "--bpe-codes": [text]},
        ),
        "export-results": ([str(samples / "run")], {"--without-text": []}),
        "results": (
            [str(samples / "ledger.jsonl")],
            {"--scale": ["demo"], "--output": ["typo/m"]},
        ),
        "config": (
            [],
            {"--task": ["demo_en_fr"], "--model": ["demo"], "--decoding": ["demo"]},
        ),
    }


@st.composite
def _command_lines(draw: Draw, samples: Path, files: list[str]) -> list[str]:
    commands = _commands(samples)
    name = draw(st.sampled_from(sorted(commands)))
    positional, options = commands[name]
    words = st.sampled_from([*HUGE, *_WORDS, "absent", "."])
    odd = words | st.sampled_from(files)
    arguments = [
        draw(odd) if draw(st.integers(0, 5)) == 0 else one for one in positional
    ]
    for option, sound in options.items():
        if not draw(st.integers(0, 2)):
            continue
        other = words if option == "--output" else odd  # no sample is written over
        values = (
            other if draw(st.integers(0, 4)) == 0 else st.sampled_from(sound or [""])
        )
        arguments += [option, draw(values)] if sound else [option]
    if draw(st.integers(0, 9)) == 0:
        arguments.append(draw(words))
    return [*name.split(), *arguments]
