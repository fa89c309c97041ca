"""The versions of the corpora that are generated."""

CORPUS_SHA256 = {
    "clauses_en_fr": "30155f1cbb1565ee87df2a19cff074eb8c9f0ee3ed5ce0cd466f3962b8866a97",
    "en_fr": "3e20a18e4b687392abb23c9e82b0ecb29910711ea49307788f95159b19b132fc",
}
"""Folder of demo:// -> SHA-256 of all its sentences, split by split.

A run on a corpus is known by it before it runs. A test holds it to what is generated.
"""
