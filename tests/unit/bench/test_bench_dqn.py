import json
from pathlib import Path

import numpy as np
import pytest

from models.dqn import evaluation
from models.dqn.agent.actions import STAY
from models.dqn.learner.settings import DEFAULT
from pipelines.bench.dqn import learner
from pipelines.bench.dqn.learner import _train_peer
from pipelines.bench.peer import PeerError


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_peer_that_cannot_run_is_told_with_its_remedy(tmp_path: Path) -> None:
    broken = script(tmp_path, "echo no module named stable_baselines3 >&2; exit 1")
    with pytest.raises(PeerError, match=r"no module named .* Install stable-baselines3"):
        _train_peer(broken, 100, 1, DEFAULT)


def test_a_peer_learns_with_our_settings_in_our_environment_under_our_mask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _train_peer(script(tmp_path, "cat"), 100, 7, DEFAULT)
    assert (asked["steps"], asked["seed"]) == (100, 7)
    assert asked["settings"]["advised"] == DEFAULT.advised and asked["settings"]["updates"] == DEFAULT.updates
    one, other = (learner.make_environment(7) for _ in range(2))
    np.testing.assert_array_equal(one.mask, other.mask)  # the peer's is made by the same call
    assert len(one.seen) == learner.RUNS


def test_never_moving_never_moves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[np.ndarray] = []

    class Watched(evaluation.VectorEnvironment):
        def step(self, moves: np.ndarray) -> np.ndarray:
            done.append(np.asarray(moves))
            return super().step(moves)

    monkeypatch.setattr(evaluation, "VectorEnvironment", Watched)
    monkeypatch.setattr(learner, "TRIAL", (1, 4, 8))
    monkeypatch.setattr(learner, "_train_ours", lambda *_: {"score": 0.0, "seconds": 1.0, "cpu_s": 1.0, "updates": 1})
    answer = {"score": -1.0, "seconds": 2.0, "cpu_s": 2.0, "updates": 1, "version": "2"}
    found = learner.compare_learners(100, (1, 2, 3), script(tmp_path, f"echo '{json.dumps(answer)}'"))
    assert (np.concatenate(done[:8]) == STAY).all() and found["stay"] != found["advised"]
    assert found["peer"] == {**answer, "scores": [-1.0] * 3}
