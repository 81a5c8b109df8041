"""Docstrings as they are written, in the reference.

They speak of internal names too, which the reference does not list: such a name is
shown without a link if it exists, and is a warning if it does not. They use |x| and
names_ as mathematics and scikit-learn do, where reStructuredText sees markup. And what
classes inherit from other packages is documented there.
"""

import re
from importlib import import_module

MARKUP = re.compile(r"(``.*?``|`[^`]*`_?)|\||(?<=\w)_(?!\w)")
CODE = re.compile(r"\s*(>>>|\.\.\. |\.\. )")


def _exists(name):
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            found = getattr(found, part, None)
        return found is not None
    return False


def _is_internal(app, domain, node):
    if domain is None or domain.name != "py":
        return None
    place = str(node.source).rpartition("docstring of ")[2].split(".")
    outer = [".".join(place[:n]) for n in range(len(place), 0, -1)]
    target = node["reftarget"].lstrip(".")
    return True if any(map(_exists, [target, *(f"{o}.{target}" for o in outer)])) else None


def _escape(app, what, name, obj, options, lines):
    for i, line in enumerate(lines):
        if not CODE.match(line):
            lines[i] = MARKUP.sub(lambda m: m[1] or "\\" + m[0], line)


def _is_foreign(app, what, name, obj, skip, options):
    home = getattr(obj, "__module__", None)
    return True if isinstance(home, str) and not home.startswith("spdp") else None


def setup(app):
    app.connect("warn-missing-reference", _is_internal)
    app.connect("autodoc-skip-member", _is_foreign)
    app.connect("autodoc-process-docstring", _escape, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
