"""The demo corpora, shipped as text. ``tools/demo_corpus`` has the grammar that generated them."""
