"""The Q-network: what every action is worth, part by part."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Values(nn.Module):
    """Two hidden layers; `Q(s, a) = V(s) + A(s, a) - mean A(s, .)` where dueling (Wang et al. 2016).

    Args:
        features: F of an observation.
        actions: A.
        parts: K quantities that are predicted apart (van Seijen et al. 2017).
        hidden: units of a hidden layer, shared out among the parts.
        dueling: whether state and action are told apart.
        generator: of the first weights.
    """

    def __init__(
        self, features: int, actions: int, parts: int, hidden: int, dueling: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.parts, self.dueling = parts, dueling
        self.first, self.second = nn.Linear(features, hidden), nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, (actions + dueling) * parts)
        with torch.no_grad():
            for layer, gain in ((self.first, 2.0), (self.second, 2.0), (self.last, 0.01)):
                deviation = (gain / layer.in_features) ** 0.5
                layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * deviation)
                layer.bias.zero_()
        # Every part has hidden units of its own: a second over the target weighs so much more than an executor that
        # in shared ones nothing would be learned of executors. What is 0 here stays 0.
        own = torch.arange(hidden) * parts // hidden
        of = torch.arange((actions + dueling) * parts) % parts
        for layer, kept in ((self.second, own[:, None] == own), (self.last, of[:, None] == own)):
            with torch.no_grad():
                layer.weight.mul_(kept * parts**0.5)
            layer.weight.register_hook(kept.float().mul)  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor) -> Tensor:
        """From (B, F) to (B, A, K)."""
        hidden = torch.relu(self.second(torch.relu(self.first(x))))
        said: Tensor = self.last(hidden).view(len(x), -1, self.parts)
        if not self.dueling:
            return said
        state, action = said[:, :1], said[:, 1:]
        return state + action - action.mean(dim=1, keepdim=True)


def target(gained: Tensor, carried: float, weight: Tensor, mask: Tensor, held: Tensor, chosen_by: Tensor) -> Tensor:
    """(B, K) `y = r + gamma * Q_held(s', a*)`, a* the allowed action of highest weighted value.

    Equation (24) of the source paper with alpha = 1 where `chosen_by` is the held (target) network; van Hasselt et
    al. 2016 (double DQN) where it is the network that learns.

    Args:
        gained: (B, K) r, over one step or several.
        carried: gamma to the number of steps; runs are cut, none ever ends.
        weight: (B, K) worth of the parts.
        mask: (B, A) actions allowed in s'.
        held: (B, A, K) values in s' by the network that values a*.
        chosen_by: (B, A, K) values in s' by the network that chooses it.
    """
    worth = (chosen_by * weight[:, None, :]).sum(dim=2).masked_fill(~mask, -torch.inf)
    at = worth.argmax(dim=1)
    return gained + carried * held[torch.arange(len(at)), at]
