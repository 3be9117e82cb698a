"""All pages say what there is: every command, option, make target, setting and link in them exists."""

import os
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
import typer

from configs.contract import Contract, Executors, Planning
from configs.settings import ROOT, load
from pipelines.cli.app import app

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {
    str(page.relative_to(ROOT)): re.sub(r"<!-- figure.*?/figure -->", "", page.read_text(), flags=re.DOTALL)
    for page in PAGES
}
MAKEFILE = (ROOT / "Makefile").read_text()


def code(text):
    """Every line of code of a page, in blocks and in sentences, without comments."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL) + re.findall(r"(?:^    \S.*\n)+", text, re.MULTILINE)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in [*lines, *spans] if line]


def commands(name):
    return sorted({(page, line) for page, text in TEXTS.items() for line in code(text) if line.startswith(name + " ")})


@cache
def program():
    """The command `tidecast`, which takes longer to build than to ask."""
    return typer.main.get_command(app)


def parse(line):
    """A `tidecast` command line is understood by its command, which is not run."""
    words = [word.strip("[]…").removesuffix("...") for word in shlex.split(line)[1:]]
    command = program()
    while hasattr(command, "commands") and (words or not command.invoke_without_command):
        assert words and words[0] in command.commands, f"{line}: {command.name} has no {words[:1]}"
        command = command.commands[words.pop(0)]
    asked = [word for word in words if word]
    with command.make_context(command.name, asked, resilient_parsing=asked == []):
        pass


@pytest.mark.parametrize(("page", "line"), commands("tidecast"))
def test_every_command_is_understood(page, line):
    parse(line)


@pytest.mark.parametrize(("page", "line"), commands("make"))
def test_every_make_target_is_there_and_its_arguments_are_understood(page, line):
    _, target, *given = shlex.split(line)
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), f"the Makefile has no {target}"
    arguments = " ".join(word.removeprefix("ARGS=") for word in given)
    if target == "run":
        parse(f"tidecast run {arguments}")
    elif target == "test":
        assert all((ROOT / path.split("::")[0]).exists() for path in arguments.split() if path.startswith("tests"))


def test_a_command_that_is_not_there_is_found():
    with pytest.raises(AssertionError, match="has no"):
        parse("tidecast forecast tables")
    with pytest.raises(Exception, match="No such option"):
        parse("tidecast run --sped 3")


@pytest.mark.parametrize(
    "line",
    sorted({line for text in TEXTS.values() for line in code(text) if line.startswith("TIDECAST_") and "=" in line}),
)
def test_every_setting_is_accepted(line, monkeypatch):
    for name, value in (pair.split("=", 1) for pair in shlex.split(line)):
        assert name not in os.environ
        monkeypatch.setenv(name, value)
    load()


@pytest.mark.parametrize("page", TEXTS)
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text())
    here = (ROOT / page).parent
    assert [link for link in links if "://" not in link and not (here / link).exists()] == []


def anchors(text):
    """What a page's headings are linked by."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS)
def test_every_link_to_a_heading_leads_to_one(page):
    linked = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", (ROOT / page).read_text())
    there = {name: anchors(((ROOT / page).parent / name if name else ROOT / page).read_text()) for name, _ in linked}
    assert [(name, anchor) for name, anchor in linked if anchor not in there[name]] == []


@pytest.mark.parametrize("page", TEXTS)
def test_every_path_that_is_named_exists(page):
    rooms = ("configs", "dags", "models", "pipelines", "tests", "tidecast", "docker", "docs")
    named = [span for span in code(TEXTS[page]) if re.fullmatch(rf"(?:{'|'.join(rooms)})/[\w./]*", span)]
    unknown = {"configs/contracts/orders.yaml"}  # what the reader is to write
    assert [path for path in named if path not in unknown and not Path(ROOT / path).exists()] == []


def test_the_page_of_contracts_lists_every_key_as_errors_say_that_it_does():
    keys = {key for form in (Contract, Executors, Planning) for key in form.model_fields}
    assert [key for key in sorted(keys) if f"`{key}`" not in TEXTS["docs/contract.md"]] == []
