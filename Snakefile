"""Convolutional Sequence to Sequence Learning: from archives to the paper's tables.

snakemake results/demo_en_fr/bleu.txt    one task's headline number
snakemake paper                          every table and figure, paper value beside ours
snakemake download | prepare | align | train | decode | evaluate    all tasks, up to a stage
"""

from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")


include: "rules/package.smk"


configfile: "config.yaml"


if Path("config.local.yaml").is_file():

    configfile: "config.local.yaml"


report: "workflow/report/workflow.rst"


include: "rules/common.smk"
include: "rules/preflight.smk"
include: "rules/download.smk"
include: "rules/corpus.smk"
include: "rules/truecasing.smk"
include: "rules/vocabulary.smk"
include: "rules/alignment.smk"
include: "rules/training.smk"
include: "rules/released.smk"
include: "rules/decoding.smk"
include: "rules/tuning.smk"
include: "rules/scoring.smk"
include: "rules/rescoring.smk"
include: "rules/plots.smk"
include: "rules/paper.smk"
include: "rules/targets.smk"


rule demo:
    default_target: True
    input:
        layout.task("demo_en_fr").bleu,
        layout.task("demo_en_fr").examples,
        plots_of("demo_en_fr"),
    localrule: True


include: "rules/overrides.smk"
