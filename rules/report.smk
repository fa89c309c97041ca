"""The report: every table, figure, curve and example in one HTML file that needs no network."""


rule write_report:
    input:
        [layout.values(name) for name in CELLS],
        shown_in_report,
        ledger=layout.ledger,
        claims="<results>/paper/claims.json",
    output:
        "<results>/paper/report.html",
    log:
        "<logs>/paper/report.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        printed=lambda w: plain_sections(settings.paper),
        shown=lambda w: {name: scale.shown_rows(rows) for name, rows in settings.paper.items()},
        attention_of="figure3",
        header=STAND_IN,
    script:
        "../workflow/scripts/write_report.py"


rule show_in_report:
    input:
        made_for_page,
    output:
        report(
            "<results>/shown/{page}.html",
            caption="../workflow/report/page.rst",
            category=lambda w: w.page.partition(".")[0],
            labels=lambda w: {"result": w.page.partition(".")[2]},
        ),
    log:
        "<logs>/shown/{page}.log",
    wildcard_constraints:
        page=alternatives(SHOWN),
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        source=source_of_page,
    script:
        "../workflow/scripts/show_in_report.py"
