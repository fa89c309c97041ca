"""Words that start a sentence in their true case, where the task's preparation asks for it."""


rule truecaser:
    input:
        "<results>/{task}/corpus/clean/train.{lang}.zst",
    output:
        "<results>/{task}/corpus/truecaser.{lang}.tsv",
    log:
        "<logs>/{task}/truecaser.{lang}.log",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("truecaser.py"),
    script:
        "../workflow/scripts/truecaser.py"


rule truecase:
    input:
        text="<results>/{task}/corpus/clean/{split}.{lang}.zst",
        truecaser="<results>/{task}/corpus/truecaser.{lang}.tsv",
    output:
        "<results>/{task}/corpus/truecased/{split}.{lang}.zst",
    log:
        "<logs>/{task}/truecase/{split}.{lang}.log",
    wildcard_constraints:
        split="train|valid",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("truecase.py"),
    script:
        "../workflow/scripts/truecase.py"
