"""The papers' tables: their values beside ours, or "not run"."""


include: "inputs/paper.smk"


rule write_table:
    input:
        scores=wanted_scores,
        published=PUBLISHED_LEDGER,
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex", ".svg"),
        "<results>/paper/{table}.md",
    log:
        "<logs>/paper/{table}.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    resources:
        workflow_folder=str(ROOT),
    params:
        shown=what_is_shown,
        code=script_code("write_table.py"),
    script:
        "../workflow/scripts/write_table.py"


use rule write_table as write_figure_table with:
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex"),
        "<results>/paper/{table}.md",
    wildcard_constraints:
        table=alternatives(DRAWN),  # their .svg is the plot


rule write_ledger:
    input:
        scores=ledger_scores,
        published=PUBLISHED_LEDGER,
    output:
        "<results>/paper/ledger.jsonl",
    log:
        "<logs>/paper/ledger.log",
    localrule: True
    conda:
        "../envs/score.yaml"
    resources:
        workflow_folder=str(ROOT),
    params:
        cells=lambda w: [cell for table in CELLS.values() for cell in plain_cells(table)],
        scale=options.scale,
        code=script_code("write_ledger.py"),
    script:
        "../workflow/scripts/write_ledger.py"
