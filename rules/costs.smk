"""What the papers' tables and figures take: hours of trainings and of all other jobs."""


include: "inputs/costs.smk"


# The ledger comes after all scores. Of the jobs that made them, their benchmark files tell the time:
# no rule has those as outputs, so the job takes what is there.
rule write_costs:
    input:
        lambda w: finished(histories_of_paper()),
        ledger=layout.ledger,
    output:
        "<results>/paper/costs.csv",
        "<results>/paper/costs.md",
    log:
        "<logs>/paper/costs.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    resources:
        workflow_folder=str(ROOT),
    params:
        cells=lambda w: cells_made_here(),
        benchmarks=BENCHMARKS,
        stated=lambda w: [settings.costs.model_dump(mode="json"), what_stands_above()],
        code=script_code("write_costs.py"),
    script:
        "../workflow/scripts/write_costs.py"
