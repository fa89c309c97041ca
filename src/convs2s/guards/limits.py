"""The bounds of everything that is read: far above what is real, far below what hurts.

A file from elsewhere may be made so that a small one takes all memory or all day. What passes a
bound is refused in one line by the reader that knows the file's name.
"""

LONGEST_LINE_BYTES = 1 << 20
"""Bytes of a line of text from elsewhere."""

LONGEST_LINE_OF_FILES_BYTES = 16 << 20
"""Bytes of a line of the workflow's own files; what is too long for a sentence is dropped there."""

LARGEST_RATIO = 200
"""Bytes that a compressed one may become; text shrinks 3 to 10 times."""

UNJUDGED_BYTES = 64 << 20
"""Decompressed bytes that no ratio is asked of."""

STEP_BYTES = 1 << 20
"""Bytes that a decompressor gives at a time, where its library can be told so."""

ZSTANDARD_STEP_BYTES = 1 << 10
"""Compressed bytes that Zstandard's gets at a time: they hold 32 MiB at most."""

XZ_MEMORY_BYTES = 256 << 20
"""Memory of an xz decompressor: xz -9 needs 65 MiB."""
