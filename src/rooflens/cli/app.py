"""The table of verbs, and a group that imports a verb only when it is called, so that `--help` stays quick."""

import importlib
import re
from typing import Any

import typer
from typer.core import TyperGroup

from rooflens.cli import streams
from rooflens.errors import NotInThisVersion, nearest
from rooflens.version import __version__

# verb -> one line of help; its module is cli/<verb>.py. Empty modules come with later versions.
VERBS = {
    "analyze": "Every layer's place on the roofline, its time, and advice.",
    "fuse": "Before and after fusion, edge by edge with reasons, and what not fusing costs.",
    "measure": "Run the layers here, forward and backward; measured dots under the roof.",
    "machine": "This machine's real ceilings, saved as a chip: --on this.",
    "calibrate": "What op families reach here, as a profile that estimates use from then on.",
    "bench": "Layer benchmarks with a history, and verdicts that hold: run, compare, report, check, …",
    "hardware": "The chip catalogue: list, show, compare, lint, new.",
    "models": "Models that need no file: list, show.",
    "ops": "What is counted for each kind of op: list, show.",
    "plot": "A roofline from bare numbers.",
    "reconcile": "Our counts beside those of other FLOP counters, each difference named.",
    "report": "Draw a saved result again, without tracing it again.",
    "doctor": "What is installed, what is missing, and which extra brings it.",
}
LATER = {
    "map": "Waves, tiles, passes, waste by cause (not in this version).",
    "explain": "The ladder from floor to expected time of one layer (not in this version).",
    "trace": "A real profiler trace under our roofs (not in this version).",
    "compare": "Two saved results, each difference with its cause (not in this version).",
    "check": "Is a claimed time physically possible? (not in this version)",
    "sweep": "From one question to a design space (not in this version).",
}
EPILOG = """Examples:

rooflens analyze resnet18 --on h100-sxm

rooflens analyze '8x64x32x32 | conv2d 128 k3 p1 bias | relu | maxpool2d k2' --on i7-12700k

rooflens fuse resnet18 mobilenet_v2 --on h100-sxm

rooflens analyze file.py:make_model --on a100-sxm-80gb --dtype bf16 --mode training --plot roofline.svg
"""


class LazyGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return [*VERBS, *LATER]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in LATER:
            raise NotInThisVersion(f"'rooflens {cmd_name}' is not in this version: see 'rooflens --help' for what is")
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"rooflens.cli.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """From the table: asking each verb for its help would import them all."""
        for title, table in (("Commands", VERBS), ("Later", LATER)):
            with formatter.section(title):
                formatter.write_dl(list(table.items()))


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rooflens {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Which zone of the roofline each layer of a neural network occupies, on any chip, and what to change."""


def run(arguments: list[str]) -> int:
    """Usage faults become one line and status 2, like every other bad input."""
    command = typer.main.get_command(app)
    try:
        found = command.main(args=_shapes_last(arguments), prog_name="rooflens", standalone_mode=False)
    except typer.Exit as done:
        return int(done.exit_code)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return _usage(error)
    return found if isinstance(found, int) else 0


_SHAPE = re.compile(r"-\d+\s*(x|\||$)")
_SWITCHES = ("--autocast", "--uncalibrated", "--strict")


def _shapes_last(arguments: list[str]) -> list[str]:
    """Layer text that begins with -1 is a MODEL with a wrong shape, not an option; what follows an option is its value."""
    if "--" in arguments:
        return arguments
    places = range(1, len(arguments))
    found = [
        i for i in places
        if _SHAPE.match(arguments[i]) and (not arguments[i - 1].startswith("-") or arguments[i - 1] in _SWITCHES)
    ]  # fmt: skip
    if not found:
        return arguments
    return [*(a for i, a in enumerate(arguments) if i not in found), "--", *(arguments[i] for i in found)]


def _usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.ctx.get_help())
        return 0
    path = error.ctx.command_path if getattr(error, "ctx", None) else "rooflens"
    message = " ".join(str(error.format_message()).split()).rstrip(".")
    streams.say(f"rooflens: E_USAGE: {message}{_meant(message)} (see '{path} --help')")
    return 2


def _meant(message: str) -> str:
    """The nearest verb, where the parser names none."""
    unknown = re.match(r"No such command '([^']*)'$", message)
    near = nearest(unknown.group(1), (*VERBS, *LATER), 1) if unknown else ""
    return f".{near}" if near else ""
