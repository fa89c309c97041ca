"""Functions from text to text: normalization, tokenization, filtering, BPE and word alignment.

No module here imports torch.
"""
