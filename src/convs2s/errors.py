"""The one exception that means: the input is at fault, and the message says what to do."""


class UserError(Exception):
    """Bad input, said in one line: the file, the line, what was expected and what to do.

    The command line and the workflow print it without a traceback and exit with code 1. Faults of
    the program itself are never turned into this class.
    """
