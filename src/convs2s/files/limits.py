"""Limits on everything that is read: far above real data, and far below what does harm.

A malicious file can be small, but reading it can take all memory or a day. Therefore each function
that reads a file refuses content that exceeds a limit, with a message of one line.
"""

LONGEST_LINE_BYTES = 1 << 20
"""Maximum number of bytes of a line in downloaded files and a user's own files."""

LONGEST_LINE_OF_FILES_BYTES = 16 << 20
"""Maximum number of bytes of a line in the workflow's own files.

The corpus filter later drops lines that are too long for a sentence.
"""

ENCODING_SAMPLE_BYTES = 1 << 18
"""Number of bytes from which the encoding of a text that is not UTF-8 is guessed."""

LARGEST_DOCUMENT_BYTES = 64 << 20
"""Maximum number of bytes of a document to translate, and of all unpacked parts of a Word document.
"""

LARGEST_RATIO = 200
"""Maximum ratio of decompressed to compressed bytes. For text, the ratio is 3 to 10."""

UNJUDGED_BYTES = 64 << 20
"""Number of decompressed bytes up to which any ratio is allowed."""

STEP_BYTES = 1 << 20
"""Maximum number of decompressed bytes that bzip2 and xz return at a time."""

ZSTANDARD_STEP_BYTES = 1 << 10
"""Number of compressed bytes that Zstandard gets at a time; it returns at most 32 MiB for them."""

XZ_MEMORY_BYTES = 256 << 20
"""Maximum memory of an xz decompressor. Files of ``xz -9`` need 65 MiB."""

MOST_NAMES = 1_000
"""Maximum number of names in an archive that are kept, for example to find one like a missing name.
"""

LARGEST_TAR_HEADER_BYTES = 8 << 10
"""Maximum number of bytes of a tar header with a long name or further properties."""

LARGEST_ZIP_LIST_BYTES = 32 << 20
"""Maximum number of bytes of a zip archive's list of members, enough for 300,000 members."""

LONGEST_SEGMENT = 1 << 20
"""Maximum number of characters of a sentence, which may have several lines in its file."""

LARGEST_ELEMENT_BYTES = 8 << 20
"""Maximum number of bytes of a document in WMT's XML, and of a unit in a translation memory."""

MOST_LANGUAGES_SHOWN = 12
"""Maximum number of an XML file's languages, or of its references, that a message lists."""

MOST_YAML_VALUES = 200_000
"""Maximum number of values in a YAML file. A value that aliases repeat counts once per repetition.
"""

DEEPEST_NESTING = 60
"""Maximum depth of nested lists and mappings in YAML."""

LONGEST_EXPRESSION = 1_000
"""Maximum number of characters of an expression in the settings of a fairseq checkpoint."""

MOST_ITEMS = 10_000
"""Maximum number of items of a list in the settings of a fairseq checkpoint."""

LARGEST_WIDTH = 1 << 16
"""Maximum number of channels of a layer or an embedding, and of cells of an LSTM."""

MOST_LAYERS = 1_000
"""Maximum number of layers in a stack of equal layers, and maximum number of such stacks."""

LARGEST_KERNEL = 1 << 10
"""Maximum width of a kernel."""

MOST_POSITIONS = 1 << 20
"""Maximum number of positions that have an embedding."""

MOST_PROCESSES = 1 << 10
"""Maximum number of threads of a command, and of its worker processes."""

MOST_RESAMPLES = 1 << 20
"""Maximum number of resamples of a bootstrap."""

MOST_LINES_SHOWN = 1 << 20
"""Maximum number of lines of a comparison that are printed."""

WIDEST_BEAM = 1 << 10
"""Maximum number of hypotheses that are kept at each step of a search."""

LARGEST_GLOSSARIES = 1 << 20
"""Maximum number of characters of all glossary patterns of a model.

A character that a pattern repeats, such as by ``{9}``, counts that many times. Each counted
character takes 400 bytes in the compiled pattern.
"""

GLOSSARY_SECONDS = 1.0
"""Maximum time that the search for a glossary pattern in one word may take."""

LARGEST_LENGTH_PENALTY = 50
"""Maximum exponent of the length penalty; ``LONGEST_OUTPUT`` to this power still fits in a float.
"""

LONGEST_SENTENCE = 1 << 12
"""Maximum number of tokens of a line, ``</s>`` included, for a network without position embeddings.
"""

LONGEST_OUTPUT = 1 << 20
"""Maximum number of tokens of an output, and maximum ratio of output length to source length."""
