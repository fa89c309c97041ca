"""Score translations and summaries: BLEU, chrF, ROUGE. This package never imports torch."""
