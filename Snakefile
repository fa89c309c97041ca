"""Convolutional Sequence to Sequence Learning: from archives to the paper's tables.

snakemake results/demo_en_fr/bleu.txt    one task's headline number
snakemake paper                          every table and figure, paper value beside ours
snakemake download | prepare | align | train | decode | evaluate    all tasks, up to a stage
snakemake --list                         all targets and rules, each with what it makes
"""

from snakemake.utils import min_version

min_version("9.27")


include: "rules/package.smk"


from convs2s.config.yaml_file import option_files

for file in option_files(Path.cwd()):

    configfile: file


include: "rules/common.smk"
include: "rules/download.smk"
include: "rules/corpus.smk"
include: "rules/vocabulary.smk"
include: "rules/alignment.smk"
include: "rules/training.smk"
include: "rules/decoding.smk"
include: "rules/scoring.smk"
include: "rules/rescoring.smk"
include: "rules/paper.smk"
include: "rules/figures.smk"
include: "rules/targets.smk"
include: "rules/wildcards.smk"


rule demo:
    """Train and score English to French in minutes; the default."""
    default_target: True
    input:
        layout.task("demo_en_fr").report("bleu"),
        layout.task("demo_en_fr").examples,
        plan.plots_of("demo_en_fr"),
