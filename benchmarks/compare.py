"""This project beside others, in one run on this machine: the table of docs/benchmarks.md.

    python benchmarks/compare.py [--shape multi30k|wmt_en_fr] [--rounds N] [--quick] [--write-docs]

Every system does each work in a process of its own: ours.py, and a script of peers/, which installs
its peer the first time. Competitors take turns, so that other work on the machine slows down none
of them alone. First each is tried with every setting that it has (``tuned``): precisions, sentences
in a batch, instructions; the fastest is kept. Then come the rounds, whose medians are the figures.
Rates are by processor time, of all threads and children; what a client or a user waits for is by
the clock. Networks have random weights, and translations a fixed length: the Transformer that
CTranslate2 runs has as many parameters as our network. Prints the table and, last, one JSON object.
``--quick`` is a tiny network, once each; ``--shape wmt_en_fr`` the paper's largest one.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from convs2s.config.decoding import DecodingSettings
from convs2s.files.text import write_lines
from convs2s.manifest import processor
from convs2s.text.bpe import learn_codes
from convs2s.text.preparation import Preparation
from page import replace_section
from preparation import LANGUAGES, news, varied
from random_model import write_random_model
from workloads import (
    CASES,
    ROOT,
    WMT_LENGTH,
    WMT_PAIRS,
    Case,
    architecture_of,
    fairseq_folder,
    workload,
    write_token_lines,
)

SECTION = "peers"
"""Of docs/benchmarks.md, which ``--write-docs`` writes."""

TEXT_LINES = 6_000
MERGES = 4_000
TRAINING_THREADS = 2

Figures = dict[str, Any]
Options = dict[str, str | int | bool]


@dataclass
class System:
    """Who does a work, and how.

    Attributes:
        script: below benchmarks/, with its first argument if it takes one.
        options: of the script.
        tuned: option -> what is tried for it; None: as it comes.
        tuned_by: what the best one has most of, or least of (``peak_bytes``).
        samples: what each round printed.
        failure: why there are none.
    """

    script: tuple[str, ...]
    options: Options
    tuned: Mapping[str, Sequence[str | int | None]] = field(default_factory=dict)
    tuned_by: str = "rate"
    samples: list[Figures] = field(default_factory=list)
    failure: str = ""

    def run(self, options: Mapping[str, str | int | bool | None]) -> Figures:
        """Return what the script prints, and ``rate``; without it ``failure`` says why."""
        words = [str(ROOT / "benchmarks" / self.script[0]), *self.script[1:]]
        for name, value in options.items():
            if value is not None and value is not False:
                words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        done = subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            self.failure = (done.stderr.strip().splitlines() or ["it failed silently"])[
                -1
            ]
            return {}
        figures: Figures = json.loads(done.stdout.splitlines()[-1])
        return figures | {"rate": figures["count"] / figures["processor_seconds"]}

    def tune(self) -> None:
        """Keep the best value of each option that is tuned, one option after the other."""
        for name, values in self.tuned.items():
            _say(f"{' '.join(self.script)}: trying {name} {values}")
            found = {value: self.run(self.options | {name: value}) for value in values}
            found = {value: figures for value, figures in found.items() if figures}
            if not found:
                return
            sign = -1 if self.tuned_by == "peak_bytes" else 1
            best = max(found, key=lambda value: sign * found[value][self.tuned_by])
            self.options = {
                key: one for key, one in self.options.items() if key != name
            }
            self.options |= {} if best is None else {name: best}
            self.failure = ""

    def sample(self) -> None:
        """Do the work once more."""
        if not self.failure and (figures := self.run(self.options)):
            self.samples.append(figures)

    @property
    def settings(self) -> str:
        """The tuned options and what was chosen for each."""
        chosen = [
            str(self.options[name]) for name in self.tuned if name in self.options
        ]
        return ", ".join(chosen)


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        work: what is done; with the unit of the figures.
        ours: this project.
        theirs: the peer, or None.
        peer: its name.
        bar: what the ratio has to reach or, without a ratio, our own figure.
        figure: of the samples.
        scale: of the figure.
        least: whether less is better.
    """

    work: str
    ours: System
    theirs: System | None
    peer: str
    bar: float | None
    figure: str = "rate"
    scale: float = 1.0
    least: bool = False


def main() -> None:
    """Measure, print and write."""
    arguments = _arguments()
    name = "tiny" if arguments.quick else arguments.shape
    rounds = 1 if arguments.quick else arguments.rounds
    with tempfile.TemporaryDirectory() as folder:
        rows = _rows(name, Path(folder), arguments.quick)
        systems = _systems(rows)
        for system in [] if arguments.quick else systems:
            system.tune()
        for number in range(rounds):
            _say(f"round {number + 1} of {rounds}")
            for system in systems:
                system.sample()
    figures = figures_of(name, rounds, rows)
    text = table(figures)
    print(text)
    if arguments.write_docs:
        replace_section(SECTION, text)
    print(json.dumps(figures))


def _rows(name: str, folder: Path, quick: bool) -> list[Row]:
    """Write all inputs and return the rows."""
    rows = [*_generation(name, folder), *_training(name, folder, quick)]
    if name != "wmt_en_fr":
        demo = "tiny" if quick else "demo"
        rows += [*_service(demo, folder, quick), *_text(folder, quick)]
    return rows


def _generation(name: str, folder: Path) -> list[Row]:
    """Return the rows of translation."""
    case, model = CASES[name], folder / f"{name}.safetensors"
    architecture = architecture_of(name)
    write_random_model(model, architecture, case.types)
    parameters = architecture.count_parameters(case.types, case.types)
    network = _fairseq_network(name)
    widths = sorted(layer.width for layer in architecture.encoder_layers)
    width = max(64, widths[len(widths) // 2] // 64 * 64)
    transformer: Options = {
        "folder": str(folder / f"{name}.ctranslate2"),
        "parameters": parameters,
        "width": width,
        "types": case.types,
    }
    precisions, batches = _precisions(), (128, 64, 256) if name == "multi30k" else (32,)
    isa = {"isa": (None, "AVX512")}

    def ours(beam: int, *, alone: bool = False, **options: Any) -> System:
        tuned = {"precision": precisions} | ({} if alone else {"batch": batches})
        stated = _search(case, folder, beam, alone) | {
            "model": str(model),
            "alone": alone,
        }
        return System(("ours.py", "generation"), stated, tuned, **options)

    def ctranslate2(beam: int, *, alone: bool = False) -> System:
        tuned = isa | ({} if alone else {"batch": (64, 32, 128)})
        stated = _search(case, folder, beam, alone) | transformer | {"alone": alone}
        return System(("peers/run_ctranslate2.py",), stated, tuned)

    int8, size = "CTranslate2, int8", 64 if name == "multi30k" else 32
    in_fairseq = _search(case, folder, 5, False)
    in_fairseq |= network | {"source": in_fairseq.pop("lines"), "batch": size}
    fairseq = System(("peers/run_fairseq.py", "generation"), in_fairseq)
    small = ours(5, tuned_by="peak_bytes")
    small.tuned, small.options["batch"] = {"precision": precisions}, size
    one, beam_5, beam_1 = ours(5, alone=True), ours(5), ours(1)
    return [
        Row("one sentence at a time, beam 5, one thread: sentences/s",
            one, ctranslate2(5, alone=True), int8, 0.9),
        Row("beam 1, batches: sentences/s", beam_1, ctranslate2(1), int8, 1.0),
        Row("beam 5, batches: sentences/s", beam_5, ctranslate2(5), int8, 1.2),
        Row("beam 5, batches: sentences/s", beam_5, fairseq, "fairseq, fp32", None),
        Row(f"peak memory at beam 5, batches of {size}: GB",
            small, fairseq, "fairseq, fp32", 0.7, "peak_bytes", 1e-9, least=True),
    ]  # fmt: skip


def _search(case: Case, folder: Path, beam: int, alone: bool) -> Options:
    """Return the options that all systems share, and write the lines."""
    count = case.alone if alone else case.sentences // (1 if beam == 1 else 2)
    lines = folder / f"{count}.{case.types}.txt"
    write_lines(lines, case.lines(count))
    threads = 1 if alone else TRAINING_THREADS
    return {
        "lines": str(lines),
        "beam": beam,
        "output": case.output,
        "threads": threads,
    }


def _fairseq_network(name: str) -> Options:
    architecture = architecture_of(name)
    sides = {
        "encoder": architecture.encoder_layers,
        "decoder": architecture.decoder_layers,
    }
    layers = {
        side: str([(one.width, one.kernel) for one in of]) for side, of in sides.items()
    }
    return {
        **layers,
        "embedding": architecture.embedding,
        "output-embedding": architecture.output_embedding,
        "types": CASES[name].types,
        "threads": TRAINING_THREADS,
    }


def _training(name: str, folder: Path, quick: bool) -> list[Row]:
    """Return the rows of training."""
    made = workload(name, "fp32", folder)
    sides = folder / "train.source", folder / "train.target"
    write_token_lines(made.store, sides)
    updates = 2 if quick or name == "wmt_en_fr" else 10
    network = _fairseq_network(name) | {"types": max(made.types)}
    text: Options = {
        "source": str(sides[0]),
        "target": str(sides[1]),
        "updates": updates,
    }
    text["tokens"] = 4000 if name == "multi30k" else WMT_PAIRS * WMT_LENGTH
    fairseq = System(("peers/run_fairseq.py", "training"), network | text)

    def ours(precision: str) -> System:
        stated: Options = {"case": name, "precision": precision, "updates": updates}
        return System(("ours.py", "training"), stated | {"threads": TRAINING_THREADS})

    bf16, fp32 = ours("bf16"), ours("fp32")
    work = f"training, {TRAINING_THREADS} threads: target tokens/s"
    return [
        Row(work.replace(",", ", bf16,", 1), bf16, fairseq, "fairseq, fp32", 2.8),
        Row(work.replace(",", ", fp32,", 1), fp32, fairseq, "fairseq, fp32", 1.6),
    ]


def _service(name: str, folder: Path, quick: bool) -> list[Row]:
    """Return the rows of the demo's network: answers, and start to end."""
    case, model = CASES[name], folder / "demo.safetensors"
    write_random_model(model, architecture_of(name), case.types)
    stated = _search(case, folder, 5, False) | {
        "model": str(model),
        "precision": "auto",
    }
    seconds = 1 if quick else 4
    offline = System(("ours.py", "generation"), stated)
    served = System(
        ("ours.py", "serving"), stated | {"clients": 32, "seconds": seconds}
    )
    one = System(("ours.py", "serving"), stated | {"clients": 1, "seconds": seconds})
    line = {name: stated[name] for name in ("model", "precision", "output")}
    start = System(("ours.py", "start"), line | {"beam": 5, "threads": 1})
    return [
        Row("one client, kept connection, demo: ms to the answer",
            one, None, "", 15.0, "wait_seconds", 1e3, least=True),
        Row("32 clients, demo: sentences/s", served, offline, "offline", 0.8),
        Row("one line, demo, start to end: s",
            start, None, "", 0.5, "wall_seconds", least=True),
    ]  # fmt: skip


def _text(folder: Path, quick: bool) -> list[Row]:
    """Return the rows of text."""
    count = 20 if quick else TEXT_LINES
    raw, codes = folder / "raw.en", folder / "codes"
    pairs = list(islice(varied(news(folder)), count))
    write_lines(raw, [source for source, _ in pairs])
    words = {}
    for side, language in enumerate(LANGUAGES):
        prepare = Preparation("moses_train", language).prepare
        words[language] = folder / f"words.{language}"
        write_lines(words[language], [prepare(pair[side]) for pair in pairs])
    source, target = words.values()
    counts = Counter(source.read_text("utf-8").split())
    codes.write_text(
        learn_codes(counts.most_common(), 50 if quick else MERGES), "utf-8"
    )
    in_raw: Options = {"lines": str(raw)}
    in_words: Options = {"lines": str(source), "codes": str(codes)}
    in_pairs: Options = {"source": str(source), "target": str(target)}
    works = [
        ("normalize and tokenize: lines/s", "preparation", "sacremoses", in_raw),
        ("BPE: lines/s", "bpe", "subword-nmt", in_words),
        ("align words, both directions: pairs/s", "alignment", "eflomal", in_pairs),
    ]
    return [
        Row(
            work,
            System(("ours.py", ours), options),
            System((f"peers/run_{peer.replace('-', '_')}.py",), options),
            peer,
            None,
        )
        for work, ours, peer, options in works
    ]


def _precisions() -> tuple[str, ...]:
    """Return all precisions by their own names; one that this machine lacks fails when tried."""
    names: tuple[str, ...] = get_args(
        DecodingSettings.model_fields["precision"].annotation
    )
    return tuple(name for name in names if name != "auto")


def _systems(rows: Sequence[Row]) -> list[System]:
    """Return each system once, competitors side by side."""
    systems: list[System] = []
    for row in rows:
        for one in (row.ours, row.theirs):
            if one is not None and all(one is not other for other in systems):
                systems.append(one)
    return systems


def figures_of(name: str, rounds: int, rows: Sequence[Row]) -> Figures:
    """Return all that the table says, and the samples."""
    versions: dict[str, str] = {}
    systems = _systems(rows)
    for system in systems:
        for one in system.samples[:1]:
            versions |= one.get("versions", {})
    # That of this project, which the processor is named with.
    versions.pop("torch", None)
    return {
        "shape": name,
        "processor": processor(),
        "cores": os.cpu_count(),
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": rounds,
        "input": "CONVS2S_SHARED" if fairseq_folder().is_dir() else "generated",
        "versions": versions,
        "rows": [_row(row) for row in rows],
        "samples": [
            {"script": one.script, "options": one.options, "samples": one.samples}
            for one in systems
        ],
    }


def _row(row: Row) -> Figures:
    """Return a row's medians, and the ratio of each round with its median, least and most."""
    both = [one for one in (row.ours, row.theirs) if one is not None]
    found = [[sample[row.figure] * row.scale for sample in one.samples] for one in both]
    medians = [statistics.median(one) if one else None for one in found]
    ratios = (
        [ours / theirs for ours, theirs in zip(*found, strict=False)]
        if found[1:]
        else []
    )
    reached = medians[0] if row.least else statistics.median(ratios) if ratios else None
    is_met = None
    if row.bar is not None and reached is not None:
        is_met = reached <= row.bar if row.least else reached >= row.bar
    return {
        "work": row.work,
        "ours": medians[0],
        "ours_least_most": [min(found[0]), max(found[0])] if found[0] else None,
        "ours_settings": row.ours.settings,
        "peer": row.peer,
        "theirs": medians[1] if row.theirs else None,
        "theirs_settings": row.theirs.settings if row.theirs else "",
        "ratio": statistics.median(ratios) if ratios else None,
        "ratio_least_most": [min(ratios), max(ratios)] if ratios else None,
        "bar": row.bar,
        "bar_is_of": "ours" if row.least else "ratio",
        "met": is_met,
        "failure": "; ".join(one.failure for one in both if one.failure),
    }


def table(figures: Figures) -> str:
    """Return the figures as the section of the page: what they are of, then the table."""
    versions = ", ".join(
        f"{name} {version}" for name, version in figures["versions"].items()
    )
    head = (
        f"{figures['processor']}, {figures['cores']} cores, {figures['date']}; {versions}; input: "
        f"{figures['input']}; medians of {figures['rounds']} rounds, least and most in brackets."
    )
    rows = [
        head,
        "",
        "| work | ours | theirs | ratio | bar |",
        "| --- | --- | --- | --- | --- |",
    ]
    rows += [f"| {' | '.join(_cells(row))} |" for row in figures["rows"]]
    failures = dict.fromkeys(
        row["failure"] for row in figures["rows"] if row["failure"]
    )
    rows += ["", *(f"Not run: {failure}." for failure in failures)]
    return "\n".join(rows).rstrip()


def _cells(row: Figures) -> list[str]:
    ours = _number(row["ours"]) + (
        f" ({row['ours_settings']})" if row["ours_settings"] else ""
    )
    if row["ratio"] is None and row["ours_least_most"]:
        ours += f" ({' to '.join(map(_number, row['ours_least_most']))})"
    named = ", ".join(filter(None, (row["peer"], row["theirs_settings"])))
    theirs = f"{_number(row['theirs'])} ({named})" if named else ""
    ratio = ""
    if row["ratio"] is not None:
        least, most = row["ratio_least_most"]
        ratio = f"{row['ratio']:.2f} ({least:.2f} to {most:.2f})"
    bar = "none" if row["bar"] is None else f"{row['bar']:g}"
    verdict = {None: "", True: ", met", False: ", **not met**"}[row["met"]]
    of_ours = " (ours)" if row["bar_is_of"] == "ours" else ""
    return [row["work"], ours, theirs, ratio, bar + of_ours + verdict]


def _number(value: float | None) -> str:
    if value is None:
        return "not run"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="This project beside others.")
    parser.add_argument(
        "--shape", choices=("multi30k", "wmt_en_fr"), default="multi30k"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="of which the median counts [5]"
    )
    parser.add_argument("--quick", action="store_true", help="a tiny network, once")
    parser.add_argument(
        "--write-docs", action="store_true", help="fill in docs/benchmarks.md"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
