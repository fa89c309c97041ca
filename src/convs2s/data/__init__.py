"""Turn files into numbers: corpora, vocabularies, token stores and batches."""
