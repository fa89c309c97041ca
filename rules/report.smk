"""The report: every table, figure, curve and example in one HTML file that needs no network."""


include: "inputs/report.smk"


rule write_report:
    input:
        [layout.values(name) for name in CELLS],
        lambda w: shown_in_report(),
        ledger=layout.ledger,
        claims="<results>/paper/claims.json",
    output:
        report("<results>/paper/report.html", category="report", labels={"report": "all of it"}),
    log:
        "<logs>/paper/report.log",
    localrule: True
    conda:
        "../envs/plot.yaml"
    params:
        printed=lambda w: {
            name: one.model_dump(mode="json") for name, one in settings.paper.items()
        },
        attention_of="figure3",
        header=STAND_IN,
        code=script_code("write_report.py"),
    script:
        "../workflow/scripts/write_report.py"
