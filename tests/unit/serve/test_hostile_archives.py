"""Models that somebody else wrote: whatever they hold, nothing of it is executed; each attack works on torch itself."""

import io
import json
import os
import pickle
import random
import zipfile
from contextlib import suppress

import pytest
import torch

from pipelines.registry import RegistryError
from pipelines.registry.artifacts import read_forecaster
from pipelines.registry.network_archive import ArchiveError, load_network
from tests.fakes import forecasters

MODEL, CONSTANTS = "archive/models/model.json", "archive/data/constants/model_constants_config.json"
SAMPLES = "archive/data/sample_inputs/model.pt"


class Mine:
    """Unpickled, it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture(scope="module")
def good():
    return forecasters.older_network()[1]


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "executed"


def changed(archive, **members):
    """The archive with members replaced or added."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, members.pop(name, None) or old.read(name))
        for name, data in members.items():
            new.writestr(name, data)
    return out.getvalue()


def text(archive, name):
    return zipfile.ZipFile(io.BytesIO(archive)).read(name).decode()


def samples(good, mine):
    made = io.BytesIO()
    torch.save((Mine(mine),), made)
    return changed(good, **{SAMPLES: made.getvalue()})


def constant(good, mine):
    config = json.loads(text(good, CONSTANTS))
    meta = next(iter(config["config"].values()))
    config["config"]["mine"] = {**meta, "path_name": "opaque_obj_0", "use_pickle": True, "tensor_meta": None}
    added = {CONSTANTS: json.dumps(config), "archive/data/constants/opaque_obj_0": pickle.dumps(Mine(mine))}
    return changed(good, **added)


def expression(good, mine):
    call = f"__import__('os').mkdir('{mine}') or Integer(2)"
    graph = text(good, MODEL)
    known = json.loads(graph[graph.index('"expr_str": ') + 12 :].split(', "', 1)[0].rstrip("}"))
    return changed(good, **{MODEL: graph.replace(json.dumps(known), json.dumps(call), 1)})


def guard(good, mine):
    graph = json.loads(text(good, MODEL))
    graph["guards_code"] = [f"__import__('os').mkdir('{mine}') is None"]
    return changed(good, **{MODEL: json.dumps(graph)})


def operator(good, mine):
    graph = json.loads(text(good, MODEL))
    node = graph["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch.serialization.os.mkdir"
    node["inputs"] = [{"name": "path", "arg": {"as_string": str(mine)}, "kind": 1}]
    return changed(good, **{MODEL: json.dumps(graph)})


ATTACKS = (samples, constant, expression, guard, operator)


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_archive_runs_code(attack, good, mine):
    try:
        load_network(attack(good, mine))
    except ArchiveError as error:
        assert "of a network's" in str(error) or "is pickled" in str(error)
    else:
        assert attack is samples  # that part is left out
    assert not mine.exists()


@pytest.mark.parametrize("attack", (samples, constant, expression, guard))
def test_torch_itself_would_have_run_it(attack, good, mine, monkeypatch):
    """The attack is real: the test above must be able to fail."""
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", raising=False)
    made = forecasters.network()
    with suppress(Exception):
        module = torch.export.load(io.BytesIO(attack(good, mine))).module()
        module(torch.ones(2, made.view.width), torch.zeros(2, made.frozen.hidden))
    assert mine.exists()


def test_what_was_registered_is_read_as_it_was(good):
    theirs, ours = torch.export.load(io.BytesIO(good)).module(), load_network(good)
    shape = [tuple(p.shape) for p in theirs.parameters()]
    assert shape == [tuple(p.shape) for p in ours.parameters()]
    made = forecasters.network()
    row = torch.ones(2, made.view.width)
    hidden = torch.zeros(2, made.frozen.hidden)
    for a, b in zip(theirs(row, hidden), ours(row, hidden), strict=True):
        assert torch.equal(a, b)


def test_torn_and_flipped_archives_are_refused_or_hold_numbers(good):
    drawn = random.Random(1)
    for cut in (0, 1, 22, len(good) // 2, len(good) - 1):
        with pytest.raises(ArchiveError):
            load_network(good[:cut])
    for _ in range(40):
        flipped = bytearray(good)
        flipped[drawn.randrange(len(good))] ^= 1 << drawn.randrange(8)
        try:
            load_network(bytes(flipped))
        except ArchiveError:
            continue


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_torn_compressed_member_is_refused_by_name(packing):
    """Archives of torch are not compressed; others may be, and each way to unpack has errors of its own."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as new:
        new.writestr(MODEL, random.Random(1).randbytes(2000))
    torn, begin = bytearray(out.getvalue()), out.getvalue().index(MODEL.encode()) + len(MODEL)
    for at in range(begin, begin + 200):
        torn[at] ^= 0xFF
    with pytest.raises(ArchiveError):
        load_network(bytes(torn))


@pytest.mark.parametrize("flavour", ["python_function", "pytorch", "sklearn"])
def test_a_model_of_mlflow_that_is_a_pickle_is_not_opened(flavour, tmp_path, mine):
    folder = tmp_path / "model"
    (folder / "data").mkdir(parents=True)
    described = {"kind": "gru", "step_s": 60, "horizon": 2, "levels": [0.5], "season": 24, "carried": 4}
    (folder / "forecaster.json").write_text(json.dumps(described))
    (folder / "MLmodel").write_text(
        "flavors:\n"
        f"  {flavour}: {{loader_module: mlflow.sklearn, model_data: data, pickled_model: data/model.pkl}}\n"
        "  python_function: {loader_module: mlflow.pyfunc.model, python_model: data/model.pkl, env: {}}\n"
    )
    for name in ("model.pkl", "model.pth", "model.pt2", "model.skops", "pickle_module_info.txt"):
        (folder / "data" / name).write_bytes(pickle.dumps(Mine(mine)))
    with pytest.raises(RegistryError):
        read_forecaster(folder, "a foreign model")
    assert not mine.exists()
