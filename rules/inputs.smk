"""Input functions that several rules share, each with an example of what it returns.

Snakemake fills in the pathvars and wildcards in the paths that they return.
"""


def of_text(path):
    """Return an input function for a file in the text of a task.

    A task may share the text of another task (its key `text`). The file is then one of that task.
    `{stage}` in the path is the text that models read: `clean`, or `truecased` in a truecased task.

    multi30k_en_de_word shares the text of multi30k_en_de. So for this task
    `<results>/{task}/corpus/{stage}/train.source.zst` is
    `<results>/multi30k_en_de/corpus/clean/train.source.zst`.
    """

    def file(wildcards):
        task = tasks[wildcards.task]
        names = {"task": task.text_name, "stage": task.model_text}
        return path.format(**{**dict(wildcards.items()), **names})

    return file


def raw_files(wildcards):
    """Return the files from which a split of a corpus is extracted.

    - For `test` of demo_en_fr they are `<downloads>/demo/en_fr/test.en` and `.fr`.
    - For a `valid` that is held out from the training text they are the files of `train`.
    - With the wildcard {number} they are each target file of a test set and its reference of this
      number, such as `<downloads>/host/test.en` and `<downloads>/host/test.1.en`.
    """
    split = wildcards.get("split", "train")
    number = int(wildcards.get("number", 0))
    return in_one_line(plan.source_files)(wildcards.task, split, number or None)


def model_of_vocabulary(wildcards):
    """Return the model file that a task's key `vocabulary_of` names.

    It is a path such as `<results>/wmt14_en_fr/models/convs2s/seed1/model.safetensors`, or that of
    a download.
    """
    return in_one_line(plan.model_of_vocabulary)(wildcards.task)


def baseline_list(wildcards):
    """Return the n-best list of another system for a test set.

    It is the user's file that the task's key `n_best` names for the test set. At a scale with the
    key `n_best`, a list of our own model stands in for it:
    `<results>/{task}/models/MODEL/RUN/test.DECODING.nbest.zst`.
    """
    return in_one_line(plan.baseline_list)(wildcards.task, wildcards.testset)


def side_of(wildcards):
    """Return the side of the language that the wildcards name: `source` or `target`."""
    return in_one_line(tasks[wildcards.task].side_of)(wildcards.lang)


def vocabularies(wildcards):
    """Return the vocabularies of both languages: `<results>/{task}/vocabulary/LANG.tsv`."""
    return [
        f"<results>/{{task}}/vocabulary/{lang}.tsv" for lang in tasks[wildcards.task].language_pair
    ]


def bpe_codes(wildcards):
    """Return the BPE codes of a task.

    They are `<results>/{task}/vocabulary/codes` if both sides share them, else `codes.LANG` of each
    side, or only of the wildcard {lang}. A task of whole words has none.
    """
    names = tasks[wildcards.task].bpe_codes_names(wildcards.get("lang"))
    return [f"<results>/{{task}}/vocabulary/{name}" for name in names]


def models_of_run(wildcards):
    """Return the model files of a run.

    They are such as `<results>/{task}/models/{model}/seed1/model.safetensors`. `seed2` and
    `released` have one model. `ensemble2` has the models of seed1 and seed2.
    """
    return [
        f"<results>/{{task}}/models/{{model}}/{run}/model.safetensors"
        for run in members(wildcards.run)
    ]


def tuned_penalty(wildcards, listed=None):
    """Return the file with the length penalty that was tuned for a decoding on the development set.

    It is such as `<results>/{task}/models/{model}/{run}/valid.{decoding}.length_penalty.json`. No
    file is needed if the decoding states a number, nor for the list on which it is tuned: `listed`
    is the test set of an n-best list.
    """
    return plan.tuned_penalty(
        wildcards.task, wildcards.model, wildcards.run, wildcards.decoding, listed
    )
