"""Parts of the placement bench are measured apart, by different code: each keeps where it is of."""

import sys

from pipelines.cli.bench import placements
from pipelines.figures.form import read_figure


def test_a_part_keeps_where_it_was_measured_while_others_are_measured_anew(tmp_path, monkeypatch):
    file, seen = tmp_path / "placement.json", []

    def ways(found):
        def real(save):
            seen.append(dict(found.get("real", {})))
            save({"turns": 1, "kept": {"a": 1}})
            seen.append(read_figure(file).data["real"]["source"]["command"])
            return {"turns": 2, "kept": {"a": 1, "b": 2}}

        return {"small": lambda save: {"kfm": {"n": len(seen)}}, "real": real}

    monkeypatch.setattr(placements, "_ways", ways)
    monkeypatch.setattr(sys, "argv", ["tidecast", "bench", "placement", "--parts", "small,real"])
    placements.measure_placements("small,real", file)
    first = read_figure(file).data
    monkeypatch.setattr(sys, "argv", ["tidecast", "bench", "placement", "--parts", "real"])
    placements.measure_placements("real", file)
    after = read_figure(file)
    assert after.data["small"] == first["small"]
    assert first["small"]["source"]["command"] == "tidecast bench placement --parts small"
    assert after.data["small"]["source"]["commit"] == after.commit and after.data["small"]["kfm"] == {"n": 0}
    own = "tidecast bench placement --parts real"
    assert seen == [{}, own, first["real"], own]  # what was kept goes on, and a cell says at once where it is of
    assert after.data["real"]["turns"] == 2 and after.data["real"]["source"]["seconds"] < 60
