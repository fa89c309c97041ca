"""The exceptions that mean: no fault of the program, and the message says what to do."""


class UserError(Exception):
    """Bad input, said in one line: the file, the line, what was expected and what to do.

    The command line and the workflow print it without a traceback and exit with code 1. Faults of
    the program itself are never turned into this class.
    """

    exit_code = 1


class UnfinishedError(UserError):
    """Work that stopped in good order before its end: the same command goes on with it.

    The exit code is that of sysexits.h for "try again" (EX_TEMPFAIL).
    """

    exit_code = 75
