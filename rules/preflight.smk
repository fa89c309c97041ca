"""What a run will take, before it starts."""


include: "inputs/preflight.smk"


rule preflight:
    log:
        "<logs>/preflight.log",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        tasks=STAGE_TASKS,
        cells=cells_to_fill,
        benchmarks=lambda w: BENCHMARKS,
        is_local=lambda w: not workflow.non_local_exec,
        places=PLACES,
        workflow_folder=ROOT,
    script:
        "../workflow/scripts/preflight.py"
