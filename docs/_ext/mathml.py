"""Formulas as MathML, which browsers show without scripts and without a network."""

from latex2mathml.converter import convert


def _inline(self, node):
    self.body.append(convert(node.astext()))
    raise _skip()


def _display(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(convert(node.astext(), display="block"))
    self.body.append("</div>\n")
    raise _skip()


def _skip():
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
