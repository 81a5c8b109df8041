"""A directive that writes the help of every command, as the program prints it."""

from docutils import nodes
from docutils.parsers.rst import Directive


class Help(Directive):
    """``spdp-help``: a section for each command."""

    def run(self):
        import click
        from typer.main import get_command

        from spdp.cli import COMMANDS, app

        program = get_command(app)
        for name in COMMANDS:  # they load when they are called
            program.load(name)
        return list(_sections(program, click.Context(program, info_name="spdp")))


def _sections(command, context):
    yield _section(command, context)
    for name, sub in getattr(command, "commands", {}).items():
        if not sub.hidden:
            inner = type(context)(sub, parent=context, info_name=name)
            yield from _sections(sub, inner)


def _section(command, context):
    context.max_content_width = 88
    title = context.command_path
    section = nodes.section(ids=[nodes.make_id(title)], names=[title])
    section += nodes.title(text=title)
    text = command.get_help(context)
    section += nodes.literal_block(text, text, language="text")
    return section


def setup(app):
    app.add_directive("spdp-help", Help)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
