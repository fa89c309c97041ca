"""The papers' tables with our values, the ledger of our runs, the claims, the costs, the report.

Tables, ledger, costs and report show the scores that exist, so asking for them trains nothing.
`snakemake paper` makes all scores first (docs/decisions/0010). An existing score that is out of
date is made again, as any input of a rule.

The files that a rule needs come from `plan` (src/convs2s/pipeline/plan.py). These rules and those
of figures.smk use:

- plan.cells: table or figure (`table1`, `figure2`) -> its cells. A cell has a task, a model, runs, a
  test set and a decoding. The cells follow from config/paper.yaml, the scale, and the settings of
  the runs. They do not contain the papers' numbers.
- plan.planned: the same without the cells that are not made here. These are cells that a published
  ledger has, whose licensed files are missing, or that time a GPU while `device` is not `cuda`.
- plan.fingerprints(cells): file -> digest of all settings from which its run is computed. As a
  param, it changes with a recipe or a decoding that a table uses.
- plan.runs: the folders of the trainings in plan.planned: `<results>/TASK/models/MODEL/seed1`.
- plan.scores(table): the score files of a table's planned cells, one for each run, such as
  `<results>/TASK/models/MODEL/seed1/test.beam5.bleu.json`. Other cells have .rouge.json,
  .speed.json, .perplexity.json or .rescored.bleu.json, those of figure3 .example.json, and those of
  lstm_figure2 phrases.NAME.json. Only files that exist are listed, but all if the command line asks
  for `paper`, and all of table3 if it asks for `speed`.
- plan.finished(files): those of the files that exist, or all if the command line asks for `paper`.
- plan.published: the ledger that the key `published` of config.yaml names, in a list, which is
  empty without that key. It is a user's file, or the copy of a download in
  .snakemake/convs2s/published.
- plan.contents(table): what a table shows beside scores. It has the table's section in
  config/paper.yaml, the fingerprints of its runs, plan.above, the trainings in config/costs.yaml,
  and the reasons why runs failed.
- plan.above: what each page says about the scale: its `stand_in` and `left_out`.
- plan.drawn_cells(figure): all planned cells of a figure, because asking for the figure makes them.
  If no cell is planned, the run ends with the reason.

A job reads the cells from the configuration, and their files in the results folder of its output.
The param `shown` makes the job run again when they change. The param `page` is the path of an
output without the prefix of a module; by comparing both, the job finds the prefix.
"""

import os
import sys


rule write_table:
    """Write a paper's table with the paper's values and ours."""
    input:
        scores=lambda w: plan.scores(w.table),
        published=lambda w: [local(file) for file in plan.published],
        changed=changed("write_table"),
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex", ".svg", ".md"),
    log:
        "<logs>/paper/{table}.log",
    benchmark:
        "<benchmarks>/paper/{table}.tsv"
    wildcard_constraints:
        table=alternatives(name for name in plan.cells if "figure" not in name),
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("write_table"),
        shown=lambda w: plan.contents(w.table),
    script:
        "../workflow/scripts/write_table.py"


rule write_figure_table:
    """Write the numbers in a paper's figure as a table; the .svg of the figure is its plot."""
    input:
        scores=lambda w: plan.scores(w.table),
        published=lambda w: [local(file) for file in plan.published],
        changed=changed("write_figure_table"),
    output:
        multiext("<results>/paper/{table}", ".csv", ".tex", ".md"),
    log:
        "<logs>/paper/{table}.log",
    benchmark:
        "<benchmarks>/paper/{table}.tsv"
    wildcard_constraints:
        table=alternatives(name for name in plan.cells if "figure" in name),
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("write_table", "write_figure_table"),
        shown=lambda w: plan.contents(w.table),
    script:
        "../workflow/scripts/write_table.py"


rule write_ledger:
    """Write the ledger: a line for each run in the tables, with score, settings and checksums."""
    input:
        scores=lambda w: plan.scores(*plan.planned),
        published=lambda w: [local(file) for file in plan.published],
        changed=changed("write_ledger"),
    output:
        "<results>/paper/ledger.jsonl",
    log:
        "<logs>/paper/ledger.log",
    benchmark:
        "<benchmarks>/paper/ledger.tsv"
    localrule: True
    conda:
        environment("score")
    params:
        code=code("write_ledger"),
        # Not read by the script. Changes of these two make the job run again.
        runs=lambda w: {name: plan.fingerprints(cells) for name, cells in plan.cells.items()},
        scale=options.scale,
    script:
        "../workflow/scripts/write_ledger.py"


rule write_claims:
    """Test the papers' claims on our scores."""
    input:
        ledger="<results>/paper/ledger.jsonl",
        changed=changed("write_claims"),
    output:
        multiext("<results>/paper/claims", ".csv", ".json", ".md"),
    log:
        "<logs>/paper/claims.log",
    benchmark:
        "<benchmarks>/paper/claims.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("write_claims"),
        # The script reads the configuration itself. With these three params it runs again after a
        # change of config/claims.yaml, config/paper.yaml or the scale's stand_in.
        claims=lambda w: {name: claim.model_dump_json() for name, claim in settings.claims.items()},
        paper=lambda w: {name: table.model_dump_json() for name, table in settings.paper.items()},
        above=plan.above,
    script:
        "../workflow/scripts/write_claims.py"


# The job reads the times of earlier jobs from the benchmark files that exist. The ledger is an
# input so that the job runs after all jobs that make scores.
rule write_costs:
    """Write what each table and figure took, and what the rest is expected to take."""
    input:
        lambda w: plan.finished(f"{run}/history.jsonl" for run in plan.runs),
        ledger="<results>/paper/ledger.jsonl",
        changed=changed("write_costs"),
    output:
        multiext("<results>/paper/costs", ".csv", ".md"),
    log:
        "<logs>/paper/costs.log",
    benchmark:
        "<benchmarks>/paper/costs.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("write_costs"),
        page=lambda w: layout.paper("costs"),
        planned=lambda w: {name: plan.fingerprints(cells) for name, cells in plan.planned.items()},
        benchmarks=workflow.pathvars.apply("<benchmarks>"),
        # Not read by the script. Changes of config/costs.yaml and of plan.above make the job run
        # again.
        stated=lambda w: [settings.costs.model_dump(mode="json"), plan.above],
    script:
        "../workflow/scripts/write_costs.py"


rule write_report:
    """Write the report: all tables, figures and claims on one page."""
    input:
        # Those of these files that exist, or all if the command line asks for `paper`:
        # history.jsonl and training.json of plan.runs; <results>/paper/X.svg of the figures;
        # example.json of figure3; and for each task and test set that was translated,
        # test.beam5.jsonl of its first run with <results>/TASK/corpus/raw/test.target.zst.
        lambda w: plan.shown_in_report(),
        ledger="<results>/paper/ledger.jsonl",
        claims="<results>/paper/claims.json",
        changed=changed("write_report"),
    output:
        report(
            "<results>/paper/report.html",
            caption="../workflow/report/page.rst",
            category="paper",
            labels={"result": "report"},
        ),
    log:
        "<logs>/paper/report.log",
    benchmark:
        "<benchmarks>/paper/report.tsv"
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("write_report"),
        shown=lambda w: {name: plan.contents(name) for name in plan.cells},
    script:
        "../workflow/scripts/write_report.py"


rule show_in_report:
    """Show a table, the claims or the costs as a page of Snakemake's own report."""
    input:
        "<results>/paper/{page}.md",
        changed=changed("show_in_report"),
    output:
        report(
            "<results>/shown/paper.{page}.html",
            caption="../workflow/report/page.rst",
            category="paper",
            labels={"result": "{page}"},
        ),
    log:
        "<logs>/shown/{page}.log",
    benchmark:
        "<benchmarks>/shown/{page}.tsv"
    wildcard_constraints:
        page=alternatives([*plan.cells, "claims", "costs"]),
    localrule: True
    conda:
        environment("plot")
    params:
        code=code("show_in_report"),
    script:
        "../workflow/scripts/show_in_report.py"


# The rule has neither input nor output, so it runs whenever it is asked for. The job reads the
# times of earlier jobs from Snakemake's benchmark files.
rule preflight:
    """Print what a run will take before it starts, also into the log."""
    log:
        "<logs>/preflight.log",
    retries: 0  # a run that does not fit now will not fit at a second try
    localrule: True
    conda:
        environment("train")
    params:
        tasks=plan.tasks,
        # The cells of the papers' tables. None if config.yaml names tasks: then only the headlines
        # of these tasks are counted.
        planned=lambda w: (
            {}
            if options.tasks
            else {name: plan.fingerprints(cells) for name, cells in plan.planned.items()}
        ),
        results=layout.results,
        benchmarks=workflow.pathvars.apply("<benchmarks>"),
        stated_log=f"{plan.logs}/preflight.log",  # without a module's prefix, like `page` above
        # To list the requests to a cluster, the job plans with this command line and other targets.
        command=[sys.executable, "-m", "snakemake", *sys.argv[1:]],
        targets=["evaluate" if options.tasks else "paper"],
        started_in=os.environ.get("PWD", "."),
    script:
        "../workflow/scripts/preflight.py"
