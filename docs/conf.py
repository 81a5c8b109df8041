"""How the site is built: `make docs`, or `make docs-quick` without the gallery."""

import os
import sys
from pathlib import Path

import spdp

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
sys.path[:0] = [str(HERE / "_ext"), str(HERE / "_pages")]

project = "spdp"
author = "The spdp developers"
project_copyright = author
release = version = spdp.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "commands",
    "internal",
    "mathml",
    "outside",
    "readable",
    "results",
    "statistics",
    "thumbnails",
]
root_doc = "index"
exclude_patterns = ["_build", "_ext", "_pages", "_results", "README.md"]
templates_path = ["_templates"]
nitpicky = True

html_theme = "furo"
html_title = "spdp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#8ec5ff", "color-brand-content": "#8ec5ff"},
}
pygments_style = "xcode"  # every colour of it is at least 4.5 : 1 on the theme's background
pygments_dark_style = "github-dark"

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autosummary_generate = True
autosummary_imported_members = True
autosummary_context = {"gallery": EXAMPLES.is_dir() and not os.environ.get("SPDP_DOCS_QUICK")}
autodoc_typehints = "none"  # the docstrings say it, and say more
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

STUB = HERE / "gallery" / "index.md"  # stands for the gallery where it is not built
STUB.parent.mkdir(exist_ok=True)
if EXAMPLES.is_dir() and not os.environ.get("SPDP_DOCS_QUICK"):
    STUB.unlink(missing_ok=True)
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": "../examples",
        "gallery_dirs": "gallery",
        "filename_pattern": r"/plot_",
        "abort_on_example_error": True,
        "remove_config_comments": True,
        "show_memory": False,
        "show_signature": False,
        "download_all_examples": False,
        "within_subsection_order": "FileNameSortKey",
        "backreferences_dir": "api/examples",  # examples that use a name, on its page
        "doc_module": ("spdp",),
        "inspect_global_variables": True,
        "thumbnail_size": (480, 336),
    }
else:
    STUB.write_text("# Gallery\n\n`make docs` fills this page with the pictures of `examples/`.\n")
    exclude_patterns += ["gallery/*.rst", "gallery/*.ipynb", "sg_execution_times.rst"]
