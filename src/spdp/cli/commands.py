"""How commands are made: groups, shared options, examples, lazy loading.

Typer reads a command's signature: each parameter is one option. A parameter may also be
a dataclass whose fields are options that several commands share
(:mod:`spdp.cli.options`), so that each option is written once.
"""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any

import typer
from typer.core import TyperGroup
from typer.models import OptionInfo

# One example for each command, shown at the end of its help and run by the tests. An
# example may read what an earlier one wrote.
EXAMPLES = {
    "plan": "spdp plan --n 2000 --k 3 --epsilon 1 --delta 1e-6 --eigenvalues 0.1 10 --spread 20%",
    "wizard": "spdp wizard --folder study",
    "run": "spdp run plan.yaml --rehearse -o rehearsal",
    "reference": "spdp reference public.npy -o public.npz",
    "sum": "spdp sum matrices.npy --eigenvalues 0.1 10 -o site1.sum",
    "merge": "spdp merge site1.sum --epsilon 1 --delta 1e-6 -o merged",
    "bids": "spdp bids dataset results group --metric offlog --shrink 0.1 --correlation 0.1 "
    "--epsilon 2 --delta 1e-6",
    "study create": "spdp study create dti.study --k 3 --eigenvalues 1e-3 1e2 --epsilon 1 "
    "--delta 1e-6 --colluding 1",
    "study seal": "spdp study seal dti.study charite.card inselspital.card lumc.card",
    "study merge": "spdp study merge dti.study charite.masked inselspital.masked lumc.masked "
    "-o draft",
    "study run": "spdp study run dti.study --folder consortium -o published",
    "study publish": "spdp study publish draft charite.close inselspital.close lumc.close "
    "-o published",
    "site join": "spdp site join dti.study tensors.npy --name charite --ledger charite.ledger "
    "-o charite.card",
    "site sign": "spdp site sign dti.study --ledger charite.ledger -o charite.seal",
    "site sum": "spdp site sum dti.study tensors.npy --ledger charite.ledger -o charite.masked",
    "site serve": "spdp site serve dti.study tensors.npy --ledger charite.ledger "
    "--folder consortium",
    "site close": "spdp site close draft --ledger charite.ledger -o charite.close",
    "site leave": "spdp site leave dti.study --ledger charite.ledger",
    "verify": "spdp verify release",
    "report": "spdp report release --names x,y,z --title Pilot --force",
    "disclose": "spdp disclose release --contact office --date 2026-03-31",
    "start": "spdp start",
    "help": "spdp help ledger create",
    "demo": "spdp demo -o demo",
    "describe": "spdp describe images.npy -o descriptors.npy",
    "reproduce": "spdp reproduce figure-4c --quick",
    "ledger create": "spdp ledger create budget.ledger --epsilon 3 --delta 1e-5",
    "ledger show": "spdp ledger show budget.ledger",
    "ledger history": "spdp ledger history budget.ledger",
    "ledger export": "spdp ledger export budget.ledger > history.csv",
    "ledger bind": "SPDP_LEDGER_KEY=sixteen-letters-or-more spdp ledger bind budget.ledger "
    "matrices.npy",
    "ledger recover": "spdp ledger recover budget.ledger 1 -o again",
}
WIDTH = 76  # of a line of an example
SETTINGS = {"max_content_width": 100}


LOOK: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


def group(help_: str, add_completion: bool = False, **options: Any) -> typer.Typer:
    """A group of commands; without a command it prints its help."""
    more = {"add_completion": add_completion, "context_settings": SETTINGS, **options}
    app = typer.Typer(help=help_, **LOOK, **more)

    @app.callback(invoke_without_command=True)
    def alone(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return app


def register(app: typer.Typer, *commands: Callable[..., None], under: str = "") -> None:
    """Add commands to a group, each by its own name and with its example."""
    for command in commands:
        name = command.__name__.rstrip("_")
        example = EXAMPLES.get(f"{under} {name}".strip())
        app.command(name, epilog=epilog(example))(expanded(command))


def epilog(example: str | None) -> str | None:
    """An example as help shows it: lines that can be copied together."""
    if example is None:
        return None
    first, *more = re.split(r" (?=-)", example)  # an option stays with its value
    lines = [first]
    for words in more:
        if len(lines[-1]) + len(words) < WIDTH:
            lines[-1] += f" {words}"
        else:
            lines.append(f"    {words}")
    return "\b\nExample:\n  " + " \\\n  ".join(lines)


class LazyGroup(TyperGroup):
    """A group whose commands are loaded when they are first called.

    ``late`` names the function or group of each command. Until it is loaded, a
    placeholder with the same help is listed, so that ``spdp --help`` imports nothing
    heavy.
    """

    late: Mapping[str, str] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that is called."""
        self.load(args[0] if args else "")
        return super().resolve_command(ctx, args)

    def load(self, name: str) -> None:
        """Replace the placeholder of a command by the command."""
        if name in self.late:
            self.commands[name] = made(pkgutil.resolve_name(self.late[name]), name)


def made(what: Any, name: str) -> Any:
    """The click command of a function, or of a Typer group."""
    if not isinstance(what, typer.Typer):
        example = getattr(what, "example", EXAMPLES.get(name))
        app = typer.Typer(add_completion=False, **LOOK)
        app.command(name, epilog=epilog(example))(expanded(what))
        return typer.main.get_command(app)
    return typer.main.get_command(what)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: each field of its groups is a parameter.

    Groups may hold groups. Fields that are neither options nor groups keep their
    defaults. Two options of one name are an error.
    """
    signature = inspect.signature(command)
    given = list(signature.parameters.values())
    options = [option for parameter in given for option in _options(parameter)]

    @wraps(command)
    def call(**values: Any) -> None:
        command(**{parameter.name: _gathered(parameter, values) for parameter in given})

    seen: Any = call  # Typer reads the two attributes below
    seen.__signature__ = signature.replace(parameters=options)
    seen.__annotations__ = {option.name: option.annotation for option in options}
    return call


def _is_group(annotation: Any) -> bool:
    return is_dataclass(annotation)


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """The options that a parameter stands for, in their order.

    All are passed by name, so that an option with a default may precede one without.
    """
    if not _is_group(parameter.annotation):
        option = parameter.default
        if isinstance(option, OptionInfo) and not option.param_decls:
            # named here: some versions of Typer read a metavar as the name
            option = copy(option)
            option.param_decls = (f"--{parameter.name.replace('_', '-')}",)
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY, default=option)
        return
    for member in _members(parameter):
        yield from _options(member)


def _members(group: Parameter) -> Iterator[Parameter]:
    """The fields of a group that the command line can set."""
    for field in fields(group.annotation):
        if _is_group(field.type):
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, annotation=field.type)
        elif isinstance(field.default, OptionInfo):
            kind, default = Parameter.KEYWORD_ONLY, field.default
            yield Parameter(field.name, kind, default=default, annotation=field.type)


def _gathered(parameter: Parameter, values: Mapping[str, Any]) -> Any:
    """The value of a command's parameter, from the values of all options."""
    if not _is_group(parameter.annotation):
        return values[parameter.name]
    members = {member.name: _gathered(member, values) for member in _members(parameter)}
    return parameter.annotation(**members)
