"""The command line: arguments in, a report on stdout and an exit status out. One file a verb, loaded when it is called."""

import signal
import sys

from rooflens.errors import RooflensError

INTERRUPTED, TERMINATED = 130, 143
_received: list[int] = []  # the parser's library tells every interruption as Ctrl-C; this tells which signal it was


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends what runs as Ctrl-C does. Not SystemExit: code of the user that catches that must not swallow
    it."""


def main() -> None:
    """Every failure a user can cause is one line on stderr and a status; nothing else is caught."""
    from rooflens.cli import streams

    signal.signal(signal.SIGTERM, _terminated)
    streams.mend()
    try:
        status = _run(sys.argv[1:])
    except RooflensError as error:
        streams.say(f"rooflens: {error.code}: {error}")
        status = error.status
    except Terminated:
        status = TERMINATED
    except KeyboardInterrupt:
        streams.say("rooflens: interrupted")
        status = INTERRUPTED
    sys.exit(TERMINATED if status == INTERRUPTED and signal.SIGTERM in _received else status)


def _run(arguments: list[str]) -> int:
    """What prints by itself, such as --help, meets closed and full streams too."""
    from rooflens.cli import streams
    from rooflens.cli.app import run

    try:
        status = run(arguments)
        sys.stdout.flush()
        return status
    except SystemExit as error:  # how the parser's library leaves a closed pipe
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        sys.stdout = sys.__stdout__
    except BrokenPipeError:
        pass
    except OSError as error:
        if error.filename is not None:
            raise
        streams.silence(sys.stdout)
        raise streams.unwritable(error) from None
    streams.silence(sys.stdout)
    return 0


def _terminated(signum: int, frame: object) -> None:
    _received.append(signum)
    raise Terminated
