"""What a network adds to the blend, over cells by hand; and a table that was broken off goes on."""

import pytest

from configs.errors import SettingsError
from pipelines.bench.forecast import shipped_cells
from pipelines.bench.forecast.networks import summarise_networks
from pipelines.bench.twin.drawn import half_of


def cell(name, ratio, share, large=True):
    models = {"blend": {"pinball": 4.0}, "networked_blend": {"pinball": 4.0 * ratio, "network_share": share}}
    return {"cell": name, "large": large, "models": models, "skipped": {}}


def test_the_summary_by_hand():
    assert (half_of("taxi"), half_of("iot")) == (1, 2)
    cells = [cell("taxi 5min", 0.5, 0.4), cell("iot 5min", 1.02, 0.1), cell("iot 1h", 2.0, None, large=False)]
    found = summarise_networks([*cells, {"cell": "elb 5min", "large": True, "models": {"blend": {"pinball": 1.0}}}])
    assert (found["cells"], found["carried"]) == (3, 2)
    assert found["worst"] == {"cell": "iot 5min", "ratio": 1.02}
    assert found["best"] == {"cell": "taxi 5min", "ratio": 0.5}
    assert found["halves"] == {"1": pytest.approx(0.5), "2": pytest.approx((1.02 * 2) ** 0.5)}
    assert found["ratio"] == pytest.approx(1.02 ** (1 / 3)) and found["large"] == pytest.approx(0.51**0.5)


def test_without_a_network_there_is_nothing_to_say():
    found = summarise_networks([])
    assert (found["cells"], found["carried"], found["ratio"], found["worst"]) == (0, 0, None, None)


def test_a_table_that_was_broken_off_goes_on_with_the_cells_that_are_left(monkeypatch, tmp_path):
    evaluated, stop_at, file = [], [3], tmp_path / "table.json"
    labels = [place.label for place in shipped_cells.list_shipped()]

    def evaluate(label, models, horizon):
        if len(evaluated) in stop_at:
            raise KeyboardInterrupt
        evaluated.append(label)
        return {"cell": label, "models": {name: {} for name in models}, "skipped": {}}

    def run(resume, models=("ridge", "blend"), horizon=12):
        found = shipped_cells.evaluate_all_shipped(models, horizon, 1, lambda line: None, file, resume)
        return [cell["cell"] for cell in found]

    monkeypatch.setattr(shipped_cells, "evaluate_shipped", evaluate)
    with pytest.raises(KeyboardInterrupt):
        run(resume=False)
    assert evaluated == labels[:3]
    stop_at.clear()
    assert run(resume=True) == evaluated == labels
    assert run(resume=True) == evaluated == labels
    for other in ({"models": ("ridge", "blend", "theta")}, {"models": ("ridge",)}, {"horizon": 24}):
        with pytest.raises(
            SettingsError, match=rf"table\.json holds figures with {next(iter(other))} .*leave --resume out"
        ):
            run(resume=True, **other)  # the champion of fewer models is another one
    assert evaluated == labels
    run(resume=False, horizon=24)
    assert run(resume=True, horizon=24) and len(evaluated) == 2 * len(labels)
