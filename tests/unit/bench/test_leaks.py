"""Planted secrets are found wherever they stand in what a deployment leaves, and are named without their value."""

import io
import os
import subprocess
import sys

import pytest

from pipelines.bench.site.leaks import BLOCK, Leaks

PLANTED = {"DATABASE_PASSWORD": "planteddatabasepassword", "JWT": "plantedjwt" + "0123456789abcdef" * 8}


@pytest.fixture
def leaks():
    return Leaks(PLANTED)


@pytest.mark.parametrize("ahead", [0, 1, BLOCK - 5, BLOCK, 2 * BLOCK - 1])
def test_a_secret_is_found_across_blocks(leaks, ahead):
    leaks.search_stream("a file", io.BytesIO(bytes(ahead) + PLANTED["JWT"].encode() + bytes(BLOCK)))
    assert leaks.found == ["a file: JWT"] and leaks.searched == 1


def test_a_part_of_a_secret_is_none(leaks):
    half = PLANTED["JWT"].encode()[: len(PLANTED["JWT"]) // 2]
    leaks.search_stream("a file", io.BytesIO(half + bytes(BLOCK) + half))
    assert leaks.found == []


def test_all_files_of_a_folder_are_searched_and_no_link_is_followed(leaks, tmp_path):
    folder = tmp_path / "volume"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "log").write_text(f"postgresql://airflow:{PLANTED['DATABASE_PASSWORD']}@postgres")
    (folder / "quiet").write_text("nothing")
    os.mkfifo(folder / "pipe")  # reading it would wait for ever
    (tmp_path / "outside").write_text(PLANTED["JWT"])
    (folder / "link").symlink_to(tmp_path / "outside")
    leaks.search_folder("volume data", folder)
    assert leaks.found == ["volume data: deep/log: DATABASE_PASSWORD"] and leaks.searched == 2


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_a_command_prints_is_searched_on_both_streams(leaks, stream):
    leaks.search_output("log", [sys.executable, "-c", f"import sys; sys.{stream}.write({PLANTED['JWT']!r})"])
    assert leaks.found == ["log: JWT"]


def test_a_command_that_fails_is_no_search(leaks):
    with pytest.raises(subprocess.CalledProcessError):
        leaks.search_output("dump", [sys.executable, "-c", "raise SystemExit(3)"])
