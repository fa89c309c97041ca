"""Write down the effective settings of a model, for the trainer and for people."""

import json
from typing import Any

from convs2s.files import atomic_text
from convs2s.pipeline.job import job

snakemake: Any

with job(snakemake.log[0]), atomic_text(snakemake.output[0]) as stream:
    json.dump(snakemake.params.settings, stream, indent=2)
