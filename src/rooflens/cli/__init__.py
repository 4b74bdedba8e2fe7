"""The command line: arguments in, a report on stdout and an exit status out. One file a verb, loaded when it is called."""

import os
import signal
import sys

from rooflens.errors import RooflensError

INTERRUPTED, TERMINATED = 130, 143


class Terminated(BaseException):
    """SIGTERM. Not SystemExit: code of the user that catches that must not swallow it."""


def main() -> None:
    """Every failure a user can cause is one line on stderr and a status; nothing else is caught."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        from rooflens.cli.app import run

        status = run(sys.argv[1:])
        sys.stdout.flush()
    except RooflensError as error:
        _say(f"rooflens: {error.code}: {error}")
        status = error.status
    except KeyboardInterrupt:
        _say("rooflens: interrupted")
        status = INTERRUPTED
    except Terminated:
        status = TERMINATED
    except BrokenPipeError:
        status = _closed_pipe()
    sys.exit(status)


def _terminated(signum: int, frame: object) -> None:
    raise Terminated


def _say(line: str) -> None:
    sys.stderr.write(
        line.encode(sys.stderr.encoding or "utf-8", "backslashreplace").decode(sys.stderr.encoding or "utf-8") + "\n"
    )


def _closed_pipe() -> int:
    """The reader (`| head`) has what it wanted; the interpreter must not complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
