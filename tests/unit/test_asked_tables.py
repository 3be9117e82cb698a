"""What a table of `asked.yaml` answers, by hand, and that each of its figures is there."""

import pytest

from configs.settings import ROOT
from pipelines.figures.form import Figure, FigureError
from pipelines.pages.asked_tables import answer, render_asked
from pipelines.pages.figure_tables import read_figures

CHAOS = {"passed": 24, "sessions": 27, "further_passed": None}
FIGURES = {"chaos": Figure("tidecast bench chaos", None, "2026-11-27", "2 cores, 24 GB", None, [], CHAOS)}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"rows": ["chaos#passed"]}, "yes"),
        ({"rows": ["chaos#sessions"]}, "**no**: sessions of these cells, three of each asked for (sessions): 27"),
        ({"rows": ["chaos"], "only": "cells in which"}, "yes"),
        ({"rows": ["chaos#passed"], "open": ["a clock"]}, "not measured: a clock"),
        ({"rows": ["chaos#passed", "chaos#moved"]}, "not measured: moved"),
        ({"rows": ["chaos#further_passed"]},
         "not measured: further cells that passed: network cut, full disks, clocks set back (further_passed)"),
        ({"rows": ["chaos#sessions"], "open": ["a clock"]},
         "**no**: sessions of these cells, three of each asked for (sessions): 27. not measured: a clock"),
    ],
)  # fmt: skip
def test_an_answer_by_hand(entry, said):
    assert answer(entry, FIGURES) == said


def test_a_figure_or_a_table_that_is_missing_is_named():
    with pytest.raises(FigureError, match=r"docs/figures/soak\.json"):
        answer({"rows": ["soak"]}, FIGURES)
    with pytest.raises(FigureError, match="fleets"):
        render_asked("<!-- asked: fleets -->\n<!-- /asked -->", FIGURES)


def test_every_row_of_the_sites_table_is_answered():
    text = render_asked("<!-- asked: site -->\n<!-- /asked -->", read_figures(ROOT / "docs" / "figures"))
    assert len(text.splitlines()) == 2 + 2 + 8
