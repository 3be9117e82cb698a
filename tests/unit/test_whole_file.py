"""What others rely on is written whole or not at all: the figures of commands, fitted jobs, and where they may lie."""

import json
import os

import pytest

from models.placement.learned.online import Scheduled
from models.placement.plan.measured import Block, Placement
from models.twin.calibration.fit import Fitted
from models.twin.sim.job import TwinJob
from pipelines import whole_file
from pipelines.backtest.job_file import read_job, write_fit
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure
from pipelines.placement.job_folder import JobFolder
from pipelines.train.placement.trial import read_trial, write_trial

JOB = TwinJob(1.0, 0.005, startup_s=(2.0, 3.0))


def fit(folder, job=JOB):
    return write_fit(Fitted(job, {}, (), 50, 2), "orders", folder)


def figure(folder, found=1):
    write_figure(folder / "map.json", {"found": found})
    return folder / "map.json"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_is_cut_off_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path, monkeypatch, error):
    def cut_off(descriptor):
        raise error

    job, found = fit(tmp_path), figure(tmp_path)
    with monkeypatch.context() as ending:
        ending.setattr(whole_file.os, "fsync", cut_off)
        for write in (lambda: fit(tmp_path, TwinJob(9.0, 0.005)), lambda: figure(tmp_path, 2)):
            with pytest.raises(type(error)):
                write()
    assert read_job(job) == JOB and read_figure(found).data == {"found": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.json", "orders.json"]


def test_what_is_known_of_a_job_in_blocks_stays_where_a_host_ends_before_it_is_on_the_disk(tmp_path, monkeypatch):
    """Without it a power failure left an empty placement.json under its name, by which the job cannot go on."""
    folder, placement = JobFolder(tmp_path), Placement((Block(("parse",), "east", 2, 1.0, 1.0),), 2.0, 1.0, True)
    synced, sync = [], os.fsync
    monkeypatch.setattr(whole_file.os, "fsync", lambda descriptor: synced.append(sync(descriptor)))
    folder.want(placement)
    write_trial(folder, Scheduled(changed_s=5.0))
    assert len(synced) == 2 and folder.wanted() == placement and read_trial(folder).barred == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["placement.json", "trial.json"]


def test_a_job_in_blocks_is_begun_once_its_topology_is_on_the_disk_as_it_is_stated(tmp_path, monkeypatch):
    placement = Placement((Block(("parse",), "east", 2, 1.0, 1.0),), 2.0, 1.0, True)
    folder, stated, synced, sync = JobFolder(tmp_path / "job"), tmp_path / "adverts.yaml", [], os.fsync
    stated.write_bytes("name: adverts\r\n# größer\n".encode())

    def noted(descriptor):
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    monkeypatch.setattr(whole_file.os, "fsync", noted)
    folder.begin(stated, placement)
    assert synced == [".adverts.yaml.new", ".id.new", ".placement.json.new"] and not folder.has_changed(stated)


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "kept").mkdir()
    link = tmp_path / "map.json"
    link.symlink_to(tmp_path / "kept" / "map.json")
    whole_file.write_json(link, [1])
    assert link.is_symlink() and json.loads((tmp_path / "kept" / "map.json").read_text()) == [1]


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        whole_file.write_json(pipe, [1])
        assert os.read(reader, 10) == b"[1]" and pipe.is_fifo()
    finally:
        os.close(reader)
