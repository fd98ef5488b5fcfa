"""Sphinx configuration of the site; `make docs` builds it, and any warning is an error."""

import os
import tempfile
from importlib.metadata import version as installed
from pathlib import Path

from pygments.lexer import RegexLexer
from pygments.token import Comment, Generic, Text

project = "calibrant"
author = "the calibrant developers"
copyright = "2026, the calibrant developers"
version = release = installed("calibrant")

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build", "*.in.md", "examples", "**.ipynb_checkpoints"]
html_theme = "pydata_sphinx_theme"
html_title = "calibrant"
smartquotes = False  # options keep their two dashes
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_theme_options = {
    "logo": {"text": "calibrant"},
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 4,
    "secondary_sidebar_items": ["page-toc"],
}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_in_temp = True  # notebooks write files
os.environ["CALIBRANT_DOCS"] = str(Path(__file__).parent)
nb_merge_streams = True

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
templates_path = ["_templates"]


myst_url_schemes = ["http", "https", "mailto"]

# Kernels warn on every start that they talk over TCP; only their errors are of interest here.
profile = Path(tempfile.mkdtemp()) / "profile_default"
profile.mkdir()
(profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(profile.parent)


class Console(RegexLexer):
    """Terminal sessions: prompts and comments stand out, output is muted, commands are plain text."""

    name = "console"
    tokens = {  # noqa: RUF012
        "root": [
            (r"^\$ ", Generic.Prompt, "command"),
            (r"^# .*\n?", Comment),
            (r".+\n?|\n", Generic.Output),
        ],
        "command": [
            (r"\\\n", Text),
            (r"  # [^\n]*", Comment),
            (r"\n", Text, "#pop"),
            (r".[^ \n\\]*", Text),
        ],
    }


def plain_bars(app, what, name, obj, options, lines):
    """Let docstrings write |x| for an absolute value, which reStructuredText would read as a substitution."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[k] = line.replace("|", r"\|")


def setup(app):
    """Register the lexer and the hook above, which runs before numpydoc takes the sections apart."""
    app.add_lexer("console", Console)
    app.connect("autodoc-process-docstring", plain_bars, priority=100)
