"""Pages of the site that are no Markdown under docs/: README, its like, and notebooks.

mkdocs calls these functions, see mkdocs.yml. In the repository links lead to the files
themselves. Samples of conf/ are shown as well.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "quick_start.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages of the site, by the page's name."""

_LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)")


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
    """Let links lead to the site's pages."""
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
    """A notebook as Markdown: its texts, and its code in blocks."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        language = "sql" if text.startswith("%%sql") else "python"
        parts.append(
            text if cell["cell_type"] == "markdown" else f"```{language}\n{text}\n```"
        )
    title, *rest = parts
    return "\n\n".join(
        [title, f"*[The notebook]({path.name}), to be run in an empty folder.*", *rest]
    )
