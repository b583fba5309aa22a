"""Pages of the site that are no Markdown under docs/: README, its like, and notebooks.

mkdocs calls these functions, see mkdocs.yml. In the repository links lead to the files
themselves. Samples of conf/ are shown as well.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

import patternlake

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages of the site, by the page's name."""
RUN = "PATTERNLAKE_RUN_NOTEBOOKS"
"""Where it is set, notebooks are run, which takes minutes, and their output shown."""

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""What colours text on a terminal."""
_TABLE = re.compile(r"^\+-", re.MULTILINE)
"""How Spark begins a table that it prints."""
_TABLE_CODE = re.compile(r"^\|.*\\\|.*$", re.M)
_LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show the version beside the name."""
    config.site_name = f"{config.site_name} {patternlake.__version__}"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files that stand elsewhere."""
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for path in sorted((ROOT / "conf").iterdir()):
        if path.is_file():
            files.append(
                File.generated(config, f"conf/{path.name}", abs_src_path=str(path))
            )
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(
            File.generated(config, f"notebooks/{path.stem}.md", content=_as_page(path))
        )
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    r"""Let links lead to the site's pages, and show ``|`` in tables as it is.

    In the code of a table the repository's viewer wants ``\\|``, and shows ``|``; the
    site's would show both signs.
    """
    markdown = _TABLE_CODE.sub(lambda found: found[0].replace("\\|", "|"), markdown)
    if page.file.src_uri.startswith("notebooks/"):
        return markdown
    before = "docs/" if page.file.src_uri in OUTSIDE.values() else "../"
    return _LINK.sub(
        lambda found: f"]({_on_site(found[1].removeprefix(before))}", markdown
    )


def _on_site(link: str) -> str:
    """The site's page for a file of the repository."""
    return (
        link.removesuffix(".ipynb") + ".md"
        if link.endswith(".ipynb")
        else OUTSIDE.get(link, link)
    )


def _as_page(path: Path) -> str:
    """A notebook as Markdown: its texts, its code in blocks, and what that printed."""
    parts = []
    for cell in _cells(path):
        text = "".join(cell["source"])
        language = "sql" if text.startswith("%%sql") else "python"
        parts.append(
            text if cell["cell_type"] == "markdown" else f"```{language}\n{text}\n```"
        )
        parts += [_shown(output) for output in cell.get("outputs", [])]
    title, *rest = parts
    return "\n\n".join(
        [title, f"*[The notebook]({path.name}), to be run in an empty folder.*", *rest]
    )


def _cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook, run in an empty folder if that is wanted."""
    if not os.environ.get(RUN):
        cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))[
            "cells"
        ]
        return cells
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=1800, resources=place).execute()
    return list(notebook["cells"])


def _shown(output: dict[str, Any]) -> str:
    """What a cell printed: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        source = f"data:image/png;base64,{data['image/png'].strip()}"
        return f"![What the code above draws]({source})"
    if "text/html" in data:
        return "".join(data["text/html"])
    text = (
        output.get("text") or data.get("text/plain") or "\n".join(output["traceback"])
    )
    shown = _ESCAPES.sub("", "".join(text)).rstrip()
    # Lines of a table stay whole, and are scrolled; others are wrapped.
    return f"```{'text' if _TABLE.search(shown) else 'output'}\n{shown}\n```"
