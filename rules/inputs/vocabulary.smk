"""The input functions of rules/vocabulary.smk."""

# The tasks whose vocabulary is a model's, and those that learn their own.
TAKES_VOCABULARY = {name for name, task in tasks.items() if task.vocabulary_of}
LEARNS_VOCABULARY = tasks.keys() - TAKES_VOCABULARY


def model_of_vocabulary(wildcards):
    """The model whose vocabulary a task takes, where downloads put it if it comes from elsewhere."""
    return local_files([tasks[wildcards.task].vocabulary_of])[0]


def words(wildcards, language):
    """How often each word of a side's training text occurs."""
    return text_folder(wildcards).word_counts(language)


def bpe_codes(wildcards, language):
    """The BPE codes of a language, or no file where words are kept whole."""
    name = tasks[wildcards.task].vocabulary.bpe_codes_name(language)
    return [layout.task(wildcards.task).bpe_codes(name)] if name else []


def memory_to_learn_bpe(wildcards, input, attempt):
    """Megabytes for subword-nmt, which holds every type.

    A type took 1.2 KB: 214 bytes for a byte of the compressed tables (docs/benchmarks.md).
    """
    return attempt * max(4000, int(1000 + 300 * input.size_mb))


def to_binarize(part):
    """An input function: a part of the corpus, with the codes and vocabularies of both sides."""

    def files(wildcards):
        pair, folder = languages(wildcards), layout.task(wildcards.task)
        return {
            **training_text(wildcards, part),
            "bpe_codes": [path for language in pair for path in bpe_codes(wildcards, language)],
            "vocabularies": [folder.vocabulary(language) for language in pair],
        }

    return files
