"""Groups of options: a dataclass as a parameter of a command stands for its fields.

Typer reads a command's signature, one option a parameter. A command may take a
dataclass instead, whose fields are options that several commands share
(:mod:`spdp.cli.groups`): they are spelt once, and what belongs together arrives
together.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, get_origin

__all__ = ["expanded"]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer is to see it: each field of its groups is a parameter.

    Groups may hold groups. Fields that are neither annotated as options nor groups keep
    their defaults. Two options of one name are an error.
    """
    signature = inspect.signature(command)
    given = list(signature.parameters.values())
    options = [option for parameter in given for option in _options(parameter)]

    @wraps(command)
    def call(**values: Any) -> None:
        command(**{parameter.name: _gathered(parameter, values) for parameter in given})

    seen: Any = call  # what follows is how functions say what they take
    seen.__signature__ = signature.replace(parameters=options)
    seen.__annotations__ = {option.name: option.annotation for option in options}
    return call


def _is_group(annotation: Any) -> bool:
    return is_dataclass(annotation)


def _options(parameter: Parameter) -> Iterator[Parameter]:
    """The options that a parameter stands for, in their order.

    All are passed by name, so that one with a default may stand before one without.
    """
    if not _is_group(parameter.annotation):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    for member in _members(parameter):
        yield from _options(member)


def _members(group: Parameter) -> Iterator[Parameter]:
    """The fields of a group that the command line can set."""
    for field in fields(group.annotation):
        if _is_group(field.type) or get_origin(field.type) is Annotated:
            default = Parameter.empty if field.default is MISSING else field.default
            kind = Parameter.KEYWORD_ONLY
            yield Parameter(field.name, kind, default=default, annotation=field.type)


def _gathered(parameter: Parameter, values: Mapping[str, Any]) -> Any:
    """What a command's parameter is, from the values of all options."""
    if not _is_group(parameter.annotation):
        return values[parameter.name]
    members = {member.name: _gathered(member, values) for member in _members(parameter)}
    return parameter.annotation(**members)
