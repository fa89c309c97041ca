"""From files to numbers: corpora, vocabularies, the token store, batches."""
