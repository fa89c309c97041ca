"""The papers' tables: their values beside ours, or "not run"."""

from convs2s.paper.cells import cells

TABLES = list(settings.paper)


def wanted_cells(name):
    """The scores that a table shows: those that exist, and in `snakemake paper` all of them.

    A table by itself never starts a training: what was not run says so.
    """
    paths = [path for cell in cells(settings, name) for path in cell.paths]
    is_paper = "paper" in workflow.dag_settings.targets
    return [path for path in dict.fromkeys(paths) if is_paper or Path(path).exists()]


rule table:
    localrule: True
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
    wildcard_constraints:
        table=flow.alternatives(TABLES),
    log:
        "<logs>/paper/{table}.log",
    conda:
        "../envs/score.yaml"
    params:
        printed=lambda w: settings.paper[w.table],
        code=script_code("table.py"),
    script:
        "../workflow/scripts/table.py"
