"""Make the dictionary for unknown words and the candidates for shortlists from aligned words."""

from typing import Any

from convs2s.pipeline.job import job
from convs2s.text.dictionary import build_dictionary

snakemake: Any

with job(snakemake):
    build_dictionary(
        source=snakemake.input.source,
        target=snakemake.input.target,
        links=snakemake.input.links,
        dictionary=snakemake.output.dictionary,
        candidates=snakemake.output.candidates,
    )
