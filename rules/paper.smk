"""The papers' tables: their values beside ours, or "not run"."""


rule table:
    input:
        lambda w: wanted_cells(w.table),
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex"),
        report(
            "<results>/paper/{table}.md",
            caption="../workflow/report/table.rst",
            category="tables",
            labels={"table": "{table}"},
        ),
    log:
        "<logs>/paper/{table}.log",
    wildcard_constraints:
        table=flow.alternatives(CELLS),
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        printed=lambda w: settings.paper[w.table],
        code=script_code("table.py"),
    script:
        "../workflow/scripts/table.py"
