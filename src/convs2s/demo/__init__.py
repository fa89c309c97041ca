"""The demo corpora, shipped as text; the grammar that writes them is in ``tools/demo_corpus``."""
