import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.spark import java

USUAL = java._FOLDERS


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch):
    monkeypatch.setattr(java, "_FOLDERS", ())
    java._probe.cache_clear()


def fake(home: Path, modules: str, version: str = "") -> Path:
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = --list-modules ]; then printf "{modules}"; else echo \'{version}\' >&2; fi\n'
    )
    program.chmod(0o755)
    return home


@pytest.mark.parametrize("version", [17, 21])
def test_supported_java_on_path_is_found(tmp_path, version):
    home = fake(tmp_path / "good", f"java.base@{version}.0.1\\njdk.incubator.vector@{version}.0.1\\n")
    found = java.find_java({"PATH": str(home / "bin")})
    assert (found.version, found.home, found.binary) == (version, home, str(home / "bin" / "java"))


def test_java_home_goes_before_path(tmp_path):
    first = fake(tmp_path / "first", "java.base@21\\njdk.incubator.vector@21\\n")
    second = fake(tmp_path / "second", "java.base@17\\njdk.incubator.vector@17\\n")
    assert java.find_java({"JAVA_HOME": str(first), "PATH": str(second / "bin")}).version == 21


def test_unusable_java_home_falls_back_to_path(tmp_path):
    good = fake(tmp_path / "good", "java.base@17\\njdk.incubator.vector@17\\n")
    assert java.find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(good / "bin")}).home == good


@pytest.mark.parametrize(
    ("modules", "version", "said"),
    [
        ("java.base@11.0.2\\n", "", "version 11, which is not supported"),
        ("", 'java version "1.8.0_392"', "version 8, which is not supported"),
        ("java.base@17.0.1\\n", "", "lacks the module jdk.incubator.vector"),
        ("", "", "does not say its version"),
    ],
)
def test_unusable_java_is_named_with_its_fault_and_the_remedy(tmp_path, modules, version, said):
    home = fake(tmp_path / "old", modules, version)
    with pytest.raises(java.JavaError) as error:
        java.find_java({"PATH": str(home / "bin")})
    text = str(error.value)
    assert said in text and str(home) in text and "openjdk-17-jre-headless" in text


def test_a_java_that_goes_away_while_it_is_asked_leaves_the_others(tmp_path):
    broken = fake(tmp_path / "broken", "")
    (broken / "bin" / "java").write_text('#!/bin/sh\nrm "$0"\n')
    good = fake(tmp_path / "good", "java.base@17\\njdk.incubator.vector@17\\n")
    assert java.find_java({"JAVA_HOME": str(broken), "PATH": f"{good / 'bin'}:/bin:/usr/bin"}).home == good


def test_ctrl_c_while_a_java_is_asked_is_not_taken_for_a_lack_of_java(tmp_path):
    home, asked, goes_on = fake(tmp_path / "good", ""), tmp_path / "asked", tmp_path / "goes-on"
    (home / "bin" / "java").write_text(
        f"#!/bin/sh\necho > {asked}\nwhile [ ! -e {goes_on} ]; do sleep 0.05; done\n"
        'printf "java.base@17\\njdk.incubator.vector@17\\n"\n'
    )
    os.mkfifo(asked)
    command = (
        "import signal, sys; from pathlib import Path; from pipelines.spark import java\n"
        "signal.signal(signal.SIGINT, lambda *_: Path(sys.argv[1]).touch())\n"  # as of a command that ends in order
        "java._FOLDERS = ()\nprint(java.find_java({'JAVA_HOME': sys.argv[2]}).version)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", command, str(goes_on), str(home)], stdout=-1, text=True, start_new_session=True
    ) as running:
        asked.read_text()
        os.killpg(running.pid, signal.SIGINT)  # a terminal's ctrl-C is for the whole group
        assert running.communicate()[0] == "17\n"


def test_hidden_java_is_an_error_with_the_remedy(tmp_path):
    with pytest.raises(java.JavaError, match="nothing in JAVA_HOME, PATH and the usual folders"):
        java.find_java({"PATH": str(tmp_path)})


def test_usual_folders_are_searched(tmp_path, monkeypatch):
    fake(tmp_path / "jvm" / "java-17", "java.base@17\\njdk.incubator.vector@17\\n")
    monkeypatch.setattr(java, "_FOLDERS", (str(tmp_path / "jvm"),))
    assert java.find_java({"PATH": ""}).version == 17


def test_the_java_of_homebrew_is_found_where_it_lies(tmp_path, monkeypatch):
    assert {"/opt/homebrew/opt", "/usr/local/opt"} <= set(USUAL)
    cellar = tmp_path / "Cellar" / "openjdk@17" / "17.0.1"
    home = fake(cellar / "libexec" / "openjdk.jdk" / "Contents" / "Home", "java.base@17\\njdk.incubator.vector@17\\n")
    (cellar / "bin").mkdir()
    (cellar / "bin" / "java").symlink_to(home / "bin" / "java")
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "openjdk@17").symlink_to(cellar)
    monkeypatch.setattr(java, "_FOLDERS", (str(tmp_path / "opt"),))
    assert java.find_java({"PATH": ""}).home == home


def test_install_without_apt_says_what_to_do(monkeypatch):
    monkeypatch.setattr(java.shutil, "which", lambda *_, **__: None)
    with pytest.raises(java.JavaError, match="openjdk-17-jre-headless"):
        java.install_java()
