"""The command line, and the only place that prints. PyTorch is imported by the commands that need it, not by --help."""

import sys
from typing import NoReturn

import click

from feddyn.cli.completion import completion
from feddyn.cli.data import data, partition
from feddyn.cli.deploy import deploy
from feddyn.cli.engine import under_torchrun
from feddyn.cli.interrupts import deafen, interrupted, listen
from feddyn.cli.leaderboard import leaderboard
from feddyn.cli.look import compare, doctor, show_run
from feddyn.cli.report import report
from feddyn.cli.reproduce import reproduce
from feddyn.cli.run import methods, resume, run
from feddyn.cli.show import say
from feddyn.cli.start import init
from feddyn.cli.sweep import sweep
from feddyn.cli.theory import alpha, theory
from feddyn.cli.use import evaluate, export
from feddyn.errors import FeddynError

NO_ARGUMENTS = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What click raises for a group alone, with the help as its message; before 8.2 it printed the help itself."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="feddyn")
def cli() -> None:
    """Federated learning by dynamic regularization (FedDyn), exact, with its baselines."""


for command in (
    init,
    run,
    resume,
    methods,
    sweep,
    leaderboard,
    show_run,
    compare,
    doctor,
    evaluate,
    export,
    reproduce,
    report,
    deploy,
    theory,
    alpha,
    data,
    partition,
    completion,
):
    cli.add_command(command)


def main() -> None:
    """The entry point: every error is one sentence on standard error with exit code 2, an interruption one with 130."""
    listen()
    try:
        code = _command()
        deafen()
    except KeyboardInterrupt:
        _interrupted()
    sys.exit(code)


def _command() -> int:
    """Carry out what the command line asks for; the exit code."""
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort:  # click's word for Ctrl-C
        _interrupted()
    except click.NoSuchOption as error:
        return _fail(_no_such_option(error), error)
    except click.ClickException as error:
        if isinstance(error, NO_ARGUMENTS):
            click.echo(error.format_message())
            return int(error.exit_code)
        return _fail(error.format_message(), error)
    except FeddynError as error:
        return _fail(str(error), error)
    except MemoryError as error:
        return _fail("there is not memory enough: use a smaller model, population, stack or batch", error)
    except OSError as error:
        return _fail(f"{error.filename or 'a file'}: {error.strerror}", error)
    return 0


def _no_such_option(error: click.NoSuchOption) -> str:
    """Keys of a setting that are written as options get the words that set them."""
    options = [word for parameter in error.ctx.command.params for word in parameter.opts] if error.ctx else []
    key = error.option_name.lstrip("-").partition("=")[0].replace("-", "_")
    if "--set" in options:
        from feddyn.settings.documents import called, every_key

        if found := called(key, every_key()):
            words = " or ".join(f"--set {known}=VALUE" for known in found)
            return f"there is no option {error.option_name}: to change the setting, write {words}"
    return error.format_message()


def _interrupted() -> NoReturn:
    if under_torchrun():  # which says itself whom it ended, and why
        deafen()
        sys.exit(130)
    interrupted("what was written until then is kept")


def _fail(sentence: str, error: BaseException) -> int:
    if _is_ours(error):
        say(f"feddyn: {sentence}", err=True)
    return 2


def _is_ours(error: BaseException) -> bool:
    """Whether this process says an error: of those that all ranks raise, the first one does."""
    if not getattr(error, "everywhere", False):
        return True
    from feddyn.engine.executors.ranks import has_the_last_word

    return has_the_last_word()
