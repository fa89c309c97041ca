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

MOST_NAMES = 1_000
"""Names of an archive's members that are compared with one that is not there."""

LARGEST_TAR_HEADER_BYTES = 8 << 10
"""Bytes of a tar header that holds a long name, or further properties."""

LARGEST_ZIP_LIST_BYTES = 32 << 20
"""Bytes of a zip archive's list of its members: 300,000 of them."""

LONGEST_SEGMENT_BYTES = 1 << 20
"""Characters of an sgm file's segment, whatever lines it is on."""

MOST_YAML_VALUES = 200_000
"""Values of a YAML file, those that an alias repeats counted each time."""

DEEPEST_NESTING = 60
"""Lists and mappings within each other, in YAML and in JSON."""

LONGEST_EXPRESSION = 1_000
"""Characters of a checkpoint's setting that is an expression."""

MOST_ITEMS = 10_000
"""Values of a checkpoint's setting that is a list, those of its inner lists counted."""

LARGEST_WIDTH = 1 << 16
"""Channels of a layer, of an embedding, and cells of an LSTM."""

MOST_LAYERS = 1_000
"""Layers of a stack of equal ones, and stacks."""

LARGEST_KERNEL = 1 << 10
"""Kernel width."""

MOST_POSITIONS = 1 << 20
"""Positions that have an embedding."""

MOST_PROCESSES = 1 << 10
"""Threads, and workers, of a command."""

MOST_RESAMPLES = 1 << 20
"""Resamples of a bootstrap."""

MOST_LINES_SHOWN = 1 << 20
"""Lines of a comparison that are printed."""

WIDEST_BEAM = 1 << 10
"""Hypotheses kept at each step of a search."""

GLOSSARY_SECONDS = 1.0
"""For a pattern of a model file to search one word."""

LARGEST_LENGTH_PENALTY = 100
"""Exponent of a length."""

LONGEST_OUTPUT = 1 << 20
"""Tokens of an output, and times that it may be as long as its source."""
