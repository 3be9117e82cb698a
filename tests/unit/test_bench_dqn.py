from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from models.dqn.learner.settings import DEFAULT
from pipelines.bench.dqn.learner import PeerError, _peer


def test_a_peer_that_cannot_run_is_told_with_its_remedy(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no module named stable_baselines3 >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(PeerError, match=r"no module named .* Install stable-baselines3"):
        _peer(broken, 100, 1, cast(Any, SimpleNamespace(settings=DEFAULT)))


def test_the_peer_is_asked_for_as_many_updates_with_the_same_sizes(tmp_path: Path) -> None:
    echo = tmp_path / "python"
    echo.write_text("#!/bin/sh\ncat\n")
    echo.chmod(0o755)
    asked = _peer(echo, 100, 1, cast(Any, SimpleNamespace(settings=DEFAULT)))
    settings = asked["settings"]
    assert settings["gradient_steps"] / settings["train_freq"] == DEFAULT.updates / 16
    assert settings["target_update_interval"] / settings["train_freq"] == DEFAULT.copy_every
    assert (settings["batch_size"], settings["gamma"]) == (DEFAULT.batch, DEFAULT.gamma)
