"""The tree is cut as it should be, or no worse than is known; and whoever reads the tree finds what he looks for."""

import re
from collections import Counter
from pathlib import Path

from configs.settings import ROOT
from tests.fakes.clock import clock_with
from tests.layout import Tree, contracts, faults

KNOWN = Path(__file__).parent / "data" / "known_layout.txt"


def test_the_tree_has_no_fault_that_is_not_known():
    found, known = set(faults(Tree.read(), contracts())), set(KNOWN.read_text().splitlines())
    assert sorted(found - known) == [], "new faults of the layout"
    assert sorted(known - found) == [], f"mended: write them out of {KNOWN.name} (python -m tests.layout > {KNOWN})"


def made(folder, **files):
    """A tree of these files, dotted names and texts."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()
    return Tree.read(folder)


def test_arrows_are_found_in_imports_anywhere_and_in_strings(tmp_path):
    tree = made(
        tmp_path,
        pipelines__low__a="def f():\n    from pipelines.low import b\n",
        pipelines__low__b='"""Not pipelines.top.c."""\nRUN = ["-m", "pipelines.top.c"]\n',
        pipelines__top__c="from ..low.a import f\nimport pipelines.top.d as d\n",
        pipelines__top__d='NAME = f"pipelines.low.{1}"\nOTHER = "my.pipelines.low.b"\n',
    )
    assert tree.arrows["pipelines.low.a"] == {"pipelines.low.b"}
    assert tree.arrows["pipelines.low.b"] == {"pipelines.top.c"}
    assert tree.arrows["pipelines.top.c"] == {"pipelines.low.a", "pipelines.top.d"}
    assert tree.arrows["pipelines.top.d"] == {"pipelines.low"}


def test_arrows_up_and_cycles_are_faults(tmp_path):
    tree = made(
        tmp_path,
        pipelines__low__a="from pipelines.low.b import x\n",
        pipelines__low__b='RUN = "python -m pipelines.top.c"\n',
        pipelines__top__c="from pipelines.low.a import x\n",
    )
    assert faults(tree, {"pipelines": [{"top"}, {"low"}]}) == [
        "arrow up in pipelines: pipelines.low.b -> pipelines.top.c",
        "cycle of modules: pipelines.low.a, pipelines.low.b, pipelines.top.c",
        "cycle of siblings in pipelines: low, top",
    ]
    assert "arrow up in pipelines: pipelines.top.c -> pipelines.low.a" in faults(tree, {"pipelines": [{"top", "low"}]})


def test_siblings_may_turn_in_circles_without_any_two_modules_doing_so(tmp_path):
    tree = made(
        tmp_path,
        models__one__a="from models.two.b import x\n",
        models__two__b="",
        models__two__c="from models.one.d import x\n",
        models__one__d="",
    )
    assert faults(tree, {}) == ["cycle of siblings in models: one, two"]


def test_sizes_and_names_are_faults(tmp_path):
    many = {f"models__many__m{i}": f"class C{i % 8}:\n    pass\n" for i in range(16)}
    alike = {f"models__alike__page_{i}": "" for i in range(4)}
    tree = made(tmp_path, **many, **alike, models__long="x = 1\n" * 251, models__map_words="")
    assert [line for line in faults(tree, {}) if "twice" not in line] == [
        "a page's text is <page>_text: models.map_words",
        "more than 15 modules: models.many",
        "more than 250 lines: models.long",
        "prefix of more than 3 modules: models.alike.page_",
    ]
    assert sum("stands twice" in line for line in faults(tree, {})) == 8


def test_the_order_is_the_one_that_import_linter_is_told():
    order = contracts()
    assert order[""][0] == {"dags"} and order[""][-1] == {"tidecast"}
    assert order["pipelines"].index({"cli"}) < order["pipelines"].index({"stack"})


def test_no_two_test_files_have_one_name():
    """Without packages pytest knows a file by its name alone, and refuses the second one."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, many in names.items() if many > 1] == []


def test_no_test_turns_the_clock_of_all_threads():
    for_all = re.compile(r"""setattr\(\s*(?:(?:\w+\.)*time,\s*["']|["'](?:\w+\.)*time\.\w+["'])""")
    found = [str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("*.py") if for_all.search(file.read_text())]
    assert not found, f"patch the module under test: setattr(module, 'time', {clock_with.__name__}(...))"
