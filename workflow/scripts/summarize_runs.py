"""Write a task's bleu.txt, bleu.json and bleu.html, or the same files for rouge."""

from pathlib import Path
from typing import Any

from convs2s.pages.render import show_in_report
from convs2s.pipeline.job import job
from convs2s.scoring.evaluation import BleuEvaluation, RougeEvaluation
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.summary import summarize_runs

snakemake: Any

with job(snakemake):
    headline = snakemake.params.headline
    scores = {}  # test set, run -> file of scores: RUN/TESTSET.DECODING.METRIC.json
    for file in map(Path, snakemake.input.scores):
        scores[file.name.partition(".")[0], file.parent.name] = file
    summarize_runs(
        BleuEvaluation if snakemake.wildcards.metric == "bleu" else RougeEvaluation,
        scores,
        Report(
            text=Path(snakemake.output.text),
            json=Path(snakemake.output.json),
            stand_in=snakemake.params.stand_in,
            header={
                "task": snakemake.wildcards.task,
                "model": headline["model"],
                "decoding": headline["decoding"],
                "scale": snakemake.params.scale,
            },
        ),
        counts=next(map(Path, snakemake.input.counts), None),
    )
    show_in_report(
        source=Path(snakemake.output.text), output=Path(snakemake.output.page)
    )
