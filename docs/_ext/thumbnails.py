"""Alt texts for the gallery's thumbnails, from the names of their scripts."""

import re

from docutils import nodes

THUMBNAIL = re.compile(r"sphx_glr_(?:plot_)?(?:\d+_)?(\w+)_thumb\.\w+$")


def _name(app, doctree):
    for image in doctree.findall(nodes.image):
        script = THUMBNAIL.search(image["uri"])
        if script and not image.get("alt"):
            image["alt"] = f"Picture of the example: {script[1].replace('_', ' ')}"


def setup(app):
    app.connect("doctree-read", _name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
