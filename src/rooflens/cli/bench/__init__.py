"""`rooflens bench`: benchmarks with a history, and verdicts that hold. One file a verb."""

import typer

from rooflens.cli.bench import baseline, check, compare, export, history, import_, merge, report, run

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Layer benchmarks with a history, and verdicts that hold."""


app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("history", epilog=history.EXAMPLES)(history.history)
app.add_typer(baseline.app, name="baseline")
app.command("check", epilog=check.EXAMPLES)(check.check)
app.command("import", epilog=import_.EXAMPLES)(import_.import_)
app.command("export", epilog=export.EXAMPLES)(export.export)
app.command("merge", epilog=merge.EXAMPLES)(merge.merge)
app.command("report", epilog=report.EXAMPLES)(report.report)
