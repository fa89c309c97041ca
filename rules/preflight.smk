"""What a run will take, before it starts."""


from dataclasses import asdict


def cells_to_fill(wildcards):
    """The cells of the paper's tables, unless config.yaml names tasks: then their headlines count."""
    return [] if options.tasks else [asdict(cell) for table in PLANNED.values() for cell in table]


rule preflight:
    log:
        "<logs>/preflight.log",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        tasks=STAGE_TASKS,
        cells=cells_to_fill,
        is_local=lambda w: not workflow.non_local_exec,
    script:
        "../workflow/scripts/preflight.py"
