"""BLEU and its relatives. Never imports torch."""
