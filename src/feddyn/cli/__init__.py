"""The command line, and the only place that prints. PyTorch is imported by the commands that need it, not by --help."""

import signal
import sys

import click

from feddyn.cli.data import data, partition
from feddyn.cli.engine import under_torchrun
from feddyn.cli.report import report
from feddyn.cli.reproduce import reproduce
from feddyn.cli.run import methods, resume, run
from feddyn.cli.sweep import sweep
from feddyn.cli.theory import alpha, theory
from feddyn.errors import FeddynError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="feddyn")
def cli() -> None:
    """Federated learning by dynamic regularization (FedDyn), exact, with its baselines."""


for command in (run, resume, methods, sweep, reproduce, report, theory, alpha, data, partition):
    cli.add_command(command)


def main() -> None:
    """The entry point: every error is one sentence on standard error with exit code 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # saves the run and says how to go on, as Ctrl-C does
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except (click.Abort, KeyboardInterrupt):
        if not under_torchrun():  # which says itself whom it ended, and why
            click.echo("feddyn: interrupted; what was written until then is kept", err=True)
        sys.exit(130)
    except click.ClickException as error:
        _fail(error.format_message(), error)
    except FeddynError as error:
        _fail(str(error), error)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror}", error)


def _fail(sentence: str, error: Exception) -> None:
    if _is_ours(error):
        click.echo(f"feddyn: {sentence}", err=True)
    sys.exit(2)


def _is_ours(error: Exception) -> bool:
    """Whether this process says an error: of those that all ranks raise, the first one does."""
    if not getattr(error, "everywhere", False):
        return True
    from feddyn.engine.executors.ranks import has_the_last_word

    return has_the_last_word()
