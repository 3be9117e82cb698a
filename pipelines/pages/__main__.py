"""`make figures`: pages from figures and code, and the figures that are old. With --check nothing is written."""

from __future__ import annotations

import sys

from configs.settings import ROOT
from pipelines.figures import age
from pipelines.figures.form import FigureError
from pipelines.pages.asked_tables import render_asked
from pipelines.pages.figure_tables import find_typed_tables, list_pages, read_figures, render_figures
from pipelines.pages.references import render_references


def main(check: bool) -> int:
    """Render figures and references into `README.md` and the pages under `docs`, or check them; prints what it finds.

    Without `check` it also prints figures older than the code they measure, by git, and commands without one.

    Args:
        check: write nothing, and count pages that differ from what is rendered.

    Returns:
        Exit status: 1 if a page differs (with `check`) or has a table of measurements outside of a figure, else 0.

    Raises:
        FigureError: a figure is missing or not in the form, or there is no reference of a name.
        RuntimeError: a setting has no meaning, or a topic no entry.
        OSError: a page or figure cannot be read or written.
    """
    figures, history = read_figures(ROOT / "docs" / "figures"), age.read_history(ROOT)
    faults = 0
    for page in list_pages(ROOT):
        text = page.read_text(encoding="utf-8")
        rendered = render_references(render_asked(render_figures(text, figures, history), figures))
        for head in find_typed_tables(text):
            faults += 1
            print(f"{page.relative_to(ROOT)}: a table of measurements outside of a figure: {head}")
        if check and rendered != text:
            faults += 1
            print(f"{page.relative_to(ROOT)}: differs from figures or code. `make figures` renders it; type none.")
        if not check and rendered != text:
            page.write_text(rendered, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: rendered")
    if not check:
        _tell("older than the code they measure", age.list_outdated(figures, ROOT))
        _tell("no figure at all", age.list_missing(figures))
    return int(faults > 0)


def _tell(what: str, lines: list[str]) -> None:
    if lines:
        print(f"{what}:", *(f"  {line}" for line in lines), sep="\n")


if __name__ == "__main__":
    try:
        raise SystemExit(main("--check" in sys.argv[1:]))
    except FigureError as error:
        raise SystemExit(f"figures: {error}") from None
