"""The papers' tables: their values beside ours, or "not run"."""

from dataclasses import asdict


def wanted_scores(wildcards):
    """The scores that a table shows: those that exist, and all where `paper` or `speed` asks.

    A table by itself never starts a training: what was not run says so.
    """
    paths = [path for cell in PLANNED[wildcards.table] for path in cell.paths]
    targets = workflow.dag_settings.targets
    is_asked = "paper" in targets or (wildcards.table == "table3" and "speed" in targets)
    return [path for path in dict.fromkeys(paths) if is_asked or Path(path).exists()]


rule write_table:
    input:
        scores=wanted_scores,
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
        table=alternatives(CELLS),
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        printed=lambda w: settings.paper[w.table].model_dump(mode="json"),
        cells=lambda w: list(map(asdict, CELLS[w.table])),
        code=script_code("write_table.py"),
    script:
        "../workflow/scripts/write_table.py"
