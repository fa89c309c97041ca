"""What a run will take, before it starts."""


rule preflight:
    log:
        "<logs>/preflight.log",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        tasks=STAGE_TASKS,
        # The trainings of the paper's tables, unless config.yaml names tasks: then of their headlines.
        tables=[] if options["tasks"] else list(CELLS),
        is_local=lambda w: not workflow.non_local_exec,
    script:
        "../workflow/scripts/preflight.py"
