"""Input functions that several rules share, each with an example of what it returns.

Snakemake fills in pathvars and wildcards of what they return.
"""


def of_text(path):
    """A file of the task whose text the wildcards' task shares (its key `text`).

    `{stage}` in it is the text that models read: `clean`, or `truecased`. Of multi30k_en_de_word, which
    shares the text of multi30k_en_de, `<results>/{task}/corpus/{stage}/train.source.zst` is
    `<results>/multi30k_en_de/corpus/clean/train.source.zst`.
    """

    def file(wildcards):
        task = tasks[wildcards.task]
        names = {"task": task.text_name, "stage": task.model_text}
        return path.format(**{**dict(wildcards.items()), **names})

    return file


def files_of(references):
    """Where files that the configuration names lie once they are downloaded, each once.

    `https://host/a.tgz#member` is `<downloads>/host/a.tgz`; a user's own file stays where it is.
    """
    places = (
        parse_file_reference(reference).path(Path(layout.downloads)) for reference in references
    )
    return list(dict.fromkeys(map(str, places)))


def raw_files(wildcards):
    """The files that a split of a corpus is extracted from: of demo_en_fr and `test`,
    `<downloads>/demo/en_fr/test.en` and `.fr`; of a `valid` that is held out, those of `train`. With
    {number}, each target file of a test set and its further reference of this number, as
    `<downloads>/host/test.en` and `<downloads>/host/test.1.en`.
    """
    split, number = wildcards.get("split", "train"), int(wildcards.get("number", 0))
    return in_one_line(plan.source_files)(wildcards.task, split, number or None)


def side_of(wildcards):
    """The side of the wildcards' language: `source` or `target`."""
    return in_one_line(tasks[wildcards.task].side_of)(wildcards.lang)


def bpe_codes(wildcards):
    """The BPE codes of a task: `<results>/{task}/vocabulary/codes` if they are joint, else
    `codes.LANG` of each side; none where words are whole. With {lang}, those of this language.
    """
    names = tasks[wildcards.task].bpe_codes_names(wildcards.get("lang"))
    return [f"<results>/{{task}}/vocabulary/{name}" for name in names]


def models_of_run(wildcards):
    """The models of a run: of `seed2` or `released` its own, of `ensemble2` those of seed1 and seed2,
    each as `<results>/{task}/models/{model}/seed1/model.safetensors`."""
    return [
        f"<results>/{{task}}/models/{{model}}/{run}/model.safetensors"
        for run in members(wildcards.run)
    ]


def tuned_penalty(wildcards, listed=None):
    """Where the length penalty stands that a decoding tunes on the development set, such as
    `<results>/{task}/models/{model}/{run}/valid.{decoding}.length_penalty.json`; nothing where the
    number is stated."""
    return plan.tuned_penalty(
        wildcards.task, wildcards.model, wildcards.run, wildcards.decoding, listed
    )


def penalty_of_list(wildcards):
    """The same for an n-best list; nothing for the list that the tuning itself goes by."""
    return tuned_penalty(wildcards, listed=wildcards.testset)


def headline_scores(wildcards):
    """The scores that a task's headline is the mean of, such as
    `<results>/{task}/models/{model}/seed1/test.beam5.bleu.json` for each of its runs (seeds, an
    ensemble, or `released`) and test sets."""
    in_one_line(tasks[wildcards.task].check_metric)(wildcards.metric)
    return plan.headline_files(wildcards.task, f"{wildcards.metric}.json")
