"""Text to text: normalize, tokenize, clean, BPE, align. Never imports torch."""
