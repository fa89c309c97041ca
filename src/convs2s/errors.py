"""The exceptions that mean: no fault of the program, and the message says what to do."""


class UserError(Exception):
    """Bad input, said in one line: the file, the line, what was expected and what to do.

    The command line and the workflow print it without a traceback and exit with code 1. Faults of
    the program itself are never turned into this class.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        """Take the message; what it quotes of a file may hold what ends a line, or moves a cursor.

        Such characters are written as Python writes them in a string, all others as they are.
        """
        shown = (one if one.isprintable() else repr(one)[1:-1] for one in message)
        super().__init__("".join(shown))


class UnfinishedError(UserError):
    """Work that stopped in good order before its end: the same command goes on with it.

    The exit code is that of sysexits.h for "try again" (EX_TEMPFAIL).
    """

    exit_code = 75
