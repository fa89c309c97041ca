"""The bounds of everything that is read: far above what is real, far below what hurts.

A file from elsewhere may be made so that a small one takes all memory or all day. What passes a
bound is refused in one line by the reader that knows the file's name.
"""

LONGEST_LINE_BYTES = 1 << 20  # bytes of a line of text from elsewhere
LONGEST_LINE_OF_FILES_BYTES = 16 << 20
"""Bytes of a line of the workflow's own files; what is too long for a sentence is dropped there."""

LARGEST_RATIO = 200  # bytes that a compressed one may become; text shrinks 3 to 10 times
UNJUDGED_BYTES = 64 << 20  # decompressed bytes that no ratio is asked of
STEP_BYTES = 1 << 20  # bytes that a decompressor gives at a time, where its library can be told so
ZSTANDARD_STEP_BYTES = 1 << 10
"""Compressed bytes that Zstandard's gets at a time: they hold 32 MiB at most."""

XZ_MEMORY_BYTES = 256 << 20  # memory of an xz decompressor: xz -9 needs 65 MiB
MOST_NAMES = 1_000  # names of an archive's members that are compared with one that is not there
LARGEST_TAR_HEADER_BYTES = 8 << 10
"""Bytes of a tar header that holds a long name, or further properties."""

LARGEST_ZIP_LIST_BYTES = 32 << 20  # bytes of a zip archive's list of its members: 300,000 of them
LONGEST_SEGMENT = 1 << 20  # characters of an sgm file's segment, whatever lines it is on
MOST_YAML_VALUES = 200_000  # values of a YAML file, those that an alias repeats counted each time
DEEPEST_NESTING = 60  # lists and mappings within each other, in YAML
LONGEST_EXPRESSION = 1_000  # characters of a checkpoint's setting that is an expression
MOST_ITEMS = 10_000  # values of a checkpoint's setting that is a list
LARGEST_WIDTH = 1 << 16  # channels of a layer, of an embedding, and cells of an LSTM
MOST_LAYERS = 1_000  # layers of a stack of equal ones, and stacks
LARGEST_KERNEL = 1 << 10  # kernel width
MOST_POSITIONS = 1 << 20  # positions that have an embedding
MOST_PROCESSES = 1 << 10  # threads, and workers, of a command
MOST_RESAMPLES = 1 << 20  # resamples of a bootstrap
MOST_LINES_SHOWN = 1 << 20  # lines of a comparison that are printed
WIDEST_BEAM = 1 << 10  # hypotheses kept at each step of a search
LARGEST_GLOSSARIES = 1 << 20
"""Characters of all patterns of a model, each times the counts of its repetitions: 400 bytes each.
"""

GLOSSARY_SECONDS = 1.0  # for a pattern of a model file to search one word
LARGEST_LENGTH_PENALTY = 50  # exponent of a length: of LONGEST_OUTPUT it is still a float
LONGEST_SENTENCE = 1 << 12
"""Tokens, ``</s>`` counted, that a network without positions reads of a line of text."""

LONGEST_OUTPUT = 1 << 20  # tokens of an output, and times that it may be as long as its source
