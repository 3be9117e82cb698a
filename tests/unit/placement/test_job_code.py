"""What is wrong with a job's code is told with its topology, and with where it stands."""

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT
from configs.topology import load_topology
from pipelines.placement.code import load_code

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")


@pytest.mark.parametrize(("name", "text", "words"), [
    ("code_cut_off", "SOURCES = {\n", r"SyntaxError: .*\(code_cut_off\.py, line 1\)"),
    ("code_astray", "\nSOURCES = EVENTS\n", r"NameError: name 'EVENTS' is not defined \(.*code_astray\.py, line 2\)"),
    ("code_alone", "import no_such_module\n", r"cannot be imported: No module named 'no_such_module'"),
])  # fmt: skip
def test_code_that_fails_when_it_is_imported_is_told_with_its_line(tmp_path, monkeypatch, name, text, words):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SettingsError, match=rf"adverts\.yaml: code='{name}' .*{words}"):
        load_code(ADVERTS.model_copy(update={"code": name}))
