"""Convolutional Sequence to Sequence Learning: from archives to the paper's tables.

snakemake results/demo_en_fr/bleu.txt    one task's headline number
snakemake paper                          every table and figure, paper value beside ours
snakemake download | prepare | align | train | decode | evaluate    all tasks, up to a stage
"""

from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")


# Joined here: for a file at the root of a git repository Snakemake itself would make it /rules/...
include: workflow.current_basedir.join("rules/package.smk")


for file in option_files(Path.cwd()):

    configfile: file


for stage in [
    "common",
    "preflight",
    "download",
    "corpus",
    "truecasing",
    "vocabulary",
    "vocabulary_parts",
    "alignment",
    "training",
    "released",
    "decoding",
    "tuning",
    "scoring",
    "rescoring",
    "baseline_list",
    "plots",
    "lstm_figures",
    "paper",
    "claims",
    "costs",
    "paper_figures",
    "report",
    "targets",
]:

    include: ROOT / f"rules/{stage}.smk"


rule demo:
    default_target: not workflow.default_target  # another workflow's own comes first
    input:
        layout.task("demo_en_fr").report("bleu"),
        layout.task("demo_en_fr").examples,
        plots_of("demo_en_fr"),
    localrule: True


include: ROOT / "rules/overrides.smk"
