"""From downloaded files to cleaned text: extract, cut into shards, tokenise, filter.

A rule writes both sides of a pair at once, so that they cannot fall out of step. Their names hold
the languages, which no wildcard can give to two outputs: the loop makes the rules of each pair.
"""

for languages, names in flow.language_pairs(tasks).items():
    raw, tok, clean = (
        [f"<results>/{{task}}/corpus/{stage}/{{part}}.{lang}.zst" for lang in languages]
        for stage in ("raw", "tok", "clean")
    )
    shards = [
        f"<results>/{{{{task}}}}/corpus/raw/train.{{scatteritem}}.{lang}.zst" for lang in languages
    ]

    rule:
        name:
            "extract_{}_{}".format(*languages)
        input:
            lambda w: files_of(w.task, w.split),
        output:
            [path.replace("{part}", "{split}") for path in raw],
        log:
            "<logs>/{task}/extract/{split}.log",
        wildcard_constraints:
            task=flow.alternatives(names),
        conda:
            "../envs/text.yaml"
        params:
            pairs=lambda w: flow.file_pairs(tasks, w.task, w.split),
            hold_out=lambda w: flow.hold_out(tasks[w.task], w.split),
            downloads=DOWNLOADS,
            code=script_code("extract.py"),
        script:
            "../workflow/scripts/extract.py"

    rule:
        name:
            "shard_{}_{}".format(*languages)
        input:
            [path.replace("{part}", "train") for path in raw],
        output:
            source=scatter.shards(shards[0]),
            target=scatter.shards(shards[1]),
        log:
            "<logs>/{task}/shard.log",
        wildcard_constraints:
            task=flow.alternatives(names),
        conda:
            "../envs/text.yaml"
        params:
            code=script_code("shard.py"),
        script:
            "../workflow/scripts/shard.py"

    rule:
        name:
            "clean_{}_{}".format(*languages)
        input:
            tok,
        output:
            sides=clean,
            report="<results>/{task}/corpus/clean/{part}.json",
        log:
            "<logs>/{task}/clean/{part}.log",
        wildcard_constraints:
            task=flow.alternatives(names),
            part="train.[0-9]+-of-[0-9]+|valid",
        conda:
            "../envs/text.yaml"
        params:
            limits=lambda w: tasks[w.task]["clean"],
            code=script_code("clean.py"),
        script:
            "../workflow/scripts/clean.py"


rule tokenise:
    input:
        "<results>/{task}/corpus/raw/{part}.{lang}.zst",
    output:
        "<results>/{task}/corpus/tok/{part}.{lang}.zst",
    log:
        "<logs>/{task}/tokenise/{part}.{lang}.log",
    wildcard_constraints:
        part="[a-z][a-z0-9_]*(.[0-9]+-of-[0-9]+)?",
    conda:
        "../envs/text.yaml"
    params:
        preparation=lambda w: flow.preparation(tasks[w.task], w.part),
        code=script_code("tokenise.py"),
    script:
        "../workflow/scripts/tokenise.py"


rule gather:
    input:
        shards=gather.shards("<results>/{{task}}/corpus/clean/train.{scatteritem}.{{lang}}.zst"),
        reports=gather.shards("<results>/{{task}}/corpus/clean/train.{scatteritem}.json"),
    output:
        text="<results>/{task}/corpus/clean/train.{lang}.zst",
        report="<results>/{task}/corpus/clean/train.{lang}.json",
    log:
        "<logs>/{task}/gather/{lang}.log",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("gather.py"),
    script:
        "../workflow/scripts/gather.py"
