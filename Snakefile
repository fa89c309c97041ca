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


with failures_in_one_line():
    OPTION_FILES = option_files(Path.cwd())

for file in OPTION_FILES:

    configfile: file


COMMON = ["common", "common_data", "common_paper"]
DATA = ["download", "corpus", "vocabulary", "alignment"]
MODELS = ["training", "decoding", "scoring", "rescoring"]

for stage in [*COMMON, *DATA, *MODELS, "paper", "figures", "targets"]:

    include: ROOT / f"rules/{stage}.smk"


DEMO = [  # workflow/Snakefile asks for it too
    layout.task("demo_en_fr").report("bleu"),
    layout.task("demo_en_fr").score_page("bleu"),
    layout.task("demo_en_fr").examples,
    *plots_of("demo_en_fr"),
]


# The default target, as the first rule of this file; another workflow's own comes before it.
rule demo:
    input:
        DEMO,


include: ROOT / "rules/fingerprints.smk"
include: ROOT / "rules/checks.smk"
