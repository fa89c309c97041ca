"""Search, hypotheses, unknown words: from a model and text to translations."""
