"""Files from elsewhere, and the demo corpus, which the package itself generates."""


rule download_file:
    output:
        "<downloads>/{host}/{path}",
    log:
        "<logs>/download/{host}/{path}.log",
    wildcard_constraints:
        host="(?!demo/)[^/]+",
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        source=lambda w: download_source(f"{w.host}/{w.path}"),
    script:
        "../workflow/scripts/download.py"


rule demo_corpus:
    output:
        expand(
            "<downloads>/demo/en_fr/{split}.{lang}",
            split=["train", "valid", "test"],
            lang=["en", "fr"],
        ),
    log:
        "<logs>/download/demo.log",
    localrule: True
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("demo_corpus.py"),
    script:
        "../workflow/scripts/demo_corpus.py"
