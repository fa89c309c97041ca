"""Words that start a sentence in their true case, where the task's preparation asks for it."""


rule learn_truecaser:
    input:
        text="<results>/{task}/corpus/clean/train.{lang}.zst",
    output:
        "<results>/{task}/corpus/truecaser.{lang}.tsv",
    log:
        "<logs>/{task}/learn_truecaser.{lang}.log",
    benchmark:
        "<benchmarks>/{task}/learn_truecaser.{lang}.tsv"
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("learn_truecaser.py"),
    script:
        "../workflow/scripts/learn_truecaser.py"


rule truecase_file:
    input:
        text="<results>/{task}/corpus/clean/{split}.{lang}.zst",
        truecaser="<results>/{task}/corpus/truecaser.{lang}.tsv",
    output:
        "<results>/{task}/corpus/truecased/{split}.{lang}.zst",
    log:
        "<logs>/{task}/truecase_file/{split}.{lang}.log",
    benchmark:
        "<benchmarks>/{task}/truecase_file/{split}.{lang}.tsv"
    wildcard_constraints:
        split="train|valid",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("truecase_file.py"),
    script:
        "../workflow/scripts/truecase_file.py"
