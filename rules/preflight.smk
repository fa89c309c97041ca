"""What a run will take, before it starts."""


rule preflight:
    log:
        "<logs>/preflight.log",
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        tasks=STAGE_TASKS,
        # Those of the paper's tables, unless config.yaml names tasks: then their headlines count.
        cells=lambda w: {} if options.tasks else cells_made_here(),
        benchmarks=prefixed(BENCHMARKS),
        is_local=lambda w: not is_on_cluster(),
        places=PLACES,
    script:
        "../workflow/scripts/preflight.py"
