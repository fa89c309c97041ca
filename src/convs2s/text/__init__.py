"""Text to text: normalise, tokenise, clean, BPE, align. Never imports torch."""
