"""Train Stable-Baselines3's DQN in the twin; run by the interpreter of an environment that has it, and numba and scipy.

Standard input: JSON of steps, seed and settings. The last line of standard output: JSON of seconds, cpu_s, score,
updates and version. Imports, compiling and the trial are not counted.
"""

# mypy: ignore-errors
# ruff: noqa: D102

import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import stable_baselines3  # noqa: E402
import torch  # noqa: E402
from gymnasium import spaces  # noqa: E402
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # noqa: E402
from stable_baselines3.common.vec_env import VecEnv  # noqa: E402
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork  # noqa: E402

from models.dqn.agent.actions import MOVES, STAY  # noqa: E402
from models.dqn.agent.observation import FEATURES  # noqa: E402
from pipelines.bench.dqn.learner import RUNS, make_environment, mean_reward, time_call  # noqa: E402

WIDE = len(FEATURES)
FORBIDDEN = 1e9


def append_mask(seen: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Append the action mask to the observation, so that the replay buffer keeps both: (runs, 40 + 6) float32."""
    return np.hstack([seen, mask]).astype(np.float32)


class Vector(VecEnv):
    """Our vector environment behind the interface that Stable-Baselines3 steps."""

    def __init__(self, seed: int) -> None:
        self.inner = make_environment(seed)
        super().__init__(RUNS, spaces.Box(-4.0, 4.0, (WIDE + len(MOVES),), np.float32), spaces.Discrete(len(MOVES)))

    def reset(self) -> np.ndarray:
        return append_mask(self.inner.seen, self.inner.mask)

    def step_async(self, actions: np.ndarray) -> None:
        self.moves = actions

    def step_wait(self):
        """Step all runs by the actions of `step_async`; a cut run begins anew, its last observation in its info.

        Returns (runs, 46) observations with masks, (runs,) rewards, (runs,) whether cut, and a dict per run.
        """
        weight = self.inner.weight
        transition = self.inner.step(self.moves)
        last = append_mask(transition.after, transition.mask)
        # A cut run is no ended one: its value goes on (`TimeLimit.truncated`), as in our learner.
        infos = [{"terminal_observation": last[i], "TimeLimit.truncated": True} if cut else {}
                 for i, cut in enumerate(transition.cut)]  # fmt: skip
        return self.reset(), (transition.reward * weight).sum(axis=1), transition.cut.astype(bool), infos

    def close(self) -> None: ...

    def get_attr(self, attr_name, indices=None):
        return [getattr(self, attr_name, None)] * RUNS

    def set_attr(self, attr_name, value, indices=None) -> None: ...

    def env_method(self, method_name, *args, indices=None, **kwargs):
        return [None] * RUNS

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * RUNS


class Unmasked(BaseFeaturesExtractor):
    """Cuts the action mask off what the network reads."""

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space, WIDE)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return observations[:, :WIDE]


class MaskedNetwork(QNetwork):
    """A Q network that takes 1e9 off the value of every action that is not allowed, in choosing and in targets."""

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return super().forward(obs) - FORBIDDEN * (1 - obs[:, WIDE:])


class MaskedPolicy(DQNPolicy):
    """The policy of a DQN whose networks are `MaskedNetwork`s."""

    def make_q_net(self) -> QNetwork:
        return MaskedNetwork(**self._update_features_extractor(self.net_args, features_extractor=None)).to(self.device)


class MaskedDqn(stable_baselines3.DQN):
    """A DQN that explores among the allowed actions, a share `advised` of its random ones being the advised action."""

    advised = 0.5

    def _sample_action(self, learning_starts, action_noise=None, n_envs=1):
        chance, mask = self.chance, self._last_obs[:, WIDE:] > 0
        moves, _ = self.policy.predict(self._last_obs, deterministic=True)
        random = np.where(mask, chance.random(mask.shape), -1.0).argmax(axis=1)
        random = np.where(chance.random(n_envs) < self.advised, self.env.inner.advice, random)
        rate = 1.0 if self.num_timesteps < learning_starts else self.exploration_rate
        moves = np.where(chance.random(n_envs) < rate, random, moves)
        return moves, moves


def main() -> None:
    """Train Stable-Baselines3's DQN once; input and output are the JSON that the head of this file describes.

    Raises:
        KeyError, ValueError: the input lacks a key, or is no JSON.
    """
    request = json.load(sys.stdin)
    ours = request["settings"]
    torch.set_num_threads(1)
    environment = Vector(request["seed"])
    environment.inner.step(np.full(RUNS, STAY))  # compiles the twin
    learner = MaskedDqn(
        MaskedPolicy, environment, seed=request["seed"], device="cpu", learning_rate=ours["learning_rate"],
        buffer_size=ours["buffer"], learning_starts=ours["warm"], batch_size=ours["batch"], gamma=ours["gamma"],
        max_grad_norm=ours["clip"], train_freq=1, gradient_steps=ours["updates"], n_steps=ours["steps"],
        target_update_interval=ours["copy_every"] * RUNS // ours["updates"], tau=ours["copy_share"],
        exploration_fraction=ours["explore_for"], exploration_final_eps=ours["explore"],
        policy_kwargs={"net_arch": [ours["hidden"]] * 2, "features_extractor_class": Unmasked},
    )  # fmt: skip
    learner.chance, learner.advised = np.random.default_rng(request["seed"]), ours["advised"]
    timing = time_call(lambda: learner.learn(request["steps"]))
    score = mean_reward(
        lambda vector: learner.policy.predict(append_mask(vector.seen, vector.mask), deterministic=True)[0]
    )
    print(
        json.dumps({**timing, "score": score, "updates": learner._n_updates, "version": stable_baselines3.__version__})
    )


if __name__ == "__main__":
    main()
