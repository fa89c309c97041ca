"""Count the words of a shard of one side's training text."""

from itertools import islice
from pathlib import Path
from typing import Any

from convs2s.data.store import shard_rows
from convs2s.data.word_counts import count_words
from convs2s.files import read_lines
from convs2s.pipeline.job import job
from convs2s.text.clean import read_report

snakemake: Any

with job(snakemake.log[0]):
    pairs = read_report(Path(snakemake.input.pairs))["kept"]
    rows = shard_rows(snakemake.wildcards.scatteritem, pairs)
    lines = read_lines(snakemake.input.text, rows.start)
    count_words(islice(lines, len(rows)), Path(snakemake.output[0]))
