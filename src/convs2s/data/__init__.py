"""From files to numbers: downloads, vocabularies, the token store, batches."""
