"""The tables and records of a tiny task that no format guards, made and read as by jobs."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from convs2s.config.identity import training_settings
from convs2s.data.dataset import learn_bpe
from convs2s.data.word_counts import count_words
from convs2s.files.text import read_lines, write_json
from convs2s.pipeline.job import job
from convs2s.text.align import align_words
from convs2s.text.dictionary import build_dictionary
from convs2s.text.truecase import learn_truecaser
from tests.support import tiny


def make(task: Path, run: Path, folder: Path) -> Iterator[Path]:
    """Yield the files, each noted by the job that made it; ``folder`` has those of no training."""
    folder.mkdir()
    source, target = task / "train.en", task / "train.fr"
    words, codes, links, truecaser = (
        folder / name for name in ("words.tsv", "codes", "links", "truecaser.tsv")
    )
    tables = {name: folder / f"{name}.tsv" for name in ("dictionary", "candidates")}
    settings, scores = folder / "settings.json", folder / "test.bleu.json"
    made = [words, codes, links, truecaser, *tables.values(), settings, scores]
    made += [task / "vocabulary/en.tsv", task / "dataset/train.json"]
    with job(stand_in(folder, [], made)):
        count_words(text=source, output=words)
        learn_bpe(words=[words], output=codes, merges=9)
        align_words(source=source, target=target, links=links, pairs=None)
        build_dictionary(source=source, target=target, links=links, **tables)
        learn_truecaser(text=source, output=truecaser)
        write_json(settings, training_settings(tiny.settings()))
        write_json(scores, {"bleu": 24.31, "test_set": {"lines": 1000}})
    # The trainer notes its own.
    yield from (*made, run / "history.jsonl", run / "training.json")


def read(path: Path) -> list[str]:
    """Return what the next job reads."""
    with job(stand_in(path.parent, [path], [])):
        return list(read_lines(path))


def stand_in(folder: Path, inputs: list[Path], outputs: list[Path]) -> SimpleNamespace:
    """Return what Snakemake hands a script, as far as the job itself asks for it."""
    return SimpleNamespace(log=[str(folder / "job.log")], input=inputs, output=outputs)
