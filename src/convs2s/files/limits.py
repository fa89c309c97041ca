"""Limits on everything that is read, far above real data and far below what does harm.

A small file that is not trusted can be made so that reading it takes all memory, or a day. The
function that reads a file refuses whatever exceeds a limit, with a message of one line.
"""

LONGEST_LINE_BYTES = 1 << 20
"""Maximum number of bytes of a line of downloaded or local text."""

LONGEST_LINE_OF_FILES_BYTES = 16 << 20
"""Maximum number of bytes of a line in the workflow's own files.

The corpus filter drops lines that are too long for a sentence.
"""

ENCODING_SAMPLE_BYTES = 1 << 18
"""Number of bytes of a text that is not UTF-8 from which its encoding is guessed."""

LARGEST_DOCUMENT_BYTES = 64 << 20
"""Maximum number of bytes of a document to translate, or of all parts of a Word document."""

LARGEST_RATIO = 200
"""Maximum ratio of decompressed to compressed bytes. Text is compressed by a factor of 3 to 10."""

UNJUDGED_BYTES = 64 << 20
"""Number of decompressed bytes up to which the ratio is not limited."""

STEP_BYTES = 1 << 20
"""Maximum number of bytes that bzip2 and xz decompress at a time."""

ZSTANDARD_STEP_BYTES = 1 << 10
"""Number of compressed bytes that Zstandard gets at a time, which grow to at most 32 MiB."""

XZ_MEMORY_BYTES = 256 << 20
"""Maximum memory of an xz decompressor. Files of ``xz -9`` need 65 MiB."""

MOST_NAMES = 1_000
"""Number of an archive's member names that are searched for names similar to a missing member's."""

LARGEST_TAR_HEADER_BYTES = 8 << 10
"""Maximum number of bytes of a tar header with a long name or further properties."""

LARGEST_ZIP_LIST_BYTES = 32 << 20
"""Maximum number of bytes of a zip archive's list of members, enough for 300,000 members."""

LONGEST_SEGMENT = 1 << 20
"""Maximum number of characters of a sentence, which may have several lines in its file."""

LARGEST_ELEMENT_BYTES = 8 << 20
"""Maximum number of bytes of a document in WMT's XML, and of a unit of a translation memory."""

MOST_LANGUAGES_SHOWN = 12
"""Maximum number of languages, or of references, of an XML file that a message names."""

MOST_YAML_VALUES = 200_000
"""Maximum number of values in a YAML file. Values that an alias repeats are counted each time."""

DEEPEST_NESTING = 60
"""Maximum depth of nested lists and mappings in YAML."""

LONGEST_EXPRESSION = 1_000
"""Maximum number of characters of an expression among a fairseq checkpoint's settings."""

MOST_ITEMS = 10_000
"""Maximum number of items of a list among a fairseq checkpoint's settings."""

LARGEST_WIDTH = 1 << 16
"""Maximum number of channels of a layer or an embedding, and of cells of an LSTM."""

MOST_LAYERS = 1_000
"""Maximum number of layers of a stack of equal layers, and maximum number of stacks."""

LARGEST_KERNEL = 1 << 10
"""Maximum kernel width."""

MOST_POSITIONS = 1 << 20
"""Maximum number of positions that have an embedding."""

MOST_PROCESSES = 1 << 10
"""Maximum number of threads, and of worker processes, of a command."""

MOST_RESAMPLES = 1 << 20
"""Maximum number of resamples of a bootstrap."""

MOST_LINES_SHOWN = 1 << 20
"""Maximum number of lines of a comparison that are printed."""

WIDEST_BEAM = 1 << 10
"""Maximum number of hypotheses that are kept at each step of a search."""

LARGEST_GLOSSARIES = 1 << 20
"""Maximum number of characters of all glossary patterns of a model.

Each pattern counts as often as its repetitions repeat it. A compiled character takes 400 bytes.
"""

GLOSSARY_SECONDS = 1.0
"""Maximum time for a glossary pattern to search one word."""

LARGEST_LENGTH_PENALTY = 50
"""Maximum exponent of a length. ``LONGEST_OUTPUT`` to this power still fits in a float."""

LONGEST_SENTENCE = 1 << 12
"""Maximum number of tokens of a line, ``</s>`` included, for a network without positions."""

LONGEST_OUTPUT = 1 << 20
"""Maximum number of tokens of an output, and maximum ratio of its length to that of the source."""
