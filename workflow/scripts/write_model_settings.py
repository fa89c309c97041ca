"""Write the effective settings of a model, which the trainer reads."""

from typing import Any

from convs2s.files.text import write_json as write_model_settings
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake):
    write_model_settings(snakemake.output[0], snakemake.params.settings)
