"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) by torch's function, without its optimizers.

One of those imports torch's compiler as it is made: seconds of CPU in each process that trains, of no use here.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Changes weights by their gradients; all that is not stated here is as torch has it by default.

    Attributes:
        rate: learning rate; may be set between two steps.
    """

    def __init__(self, weights: Iterable[Tensor], rate: float, decay: float = 0.0, fused: bool = False) -> None:
        """Nothing was learned yet.

        Args:
            weights: that are to change.
            rate: learning rate.
            decay: share of the weights that goes with each step at a learning rate of 1; above 0 it is AdamW.
            fused: change all weights in one operation, which is quicker and rounds in another way.
        """
        self.rate, self._decay, self._fused = rate, decay, fused
        self._weights = list(weights)
        self._past = [(torch.zeros_like(one), torch.zeros_like(one), torch.zeros(())) for one in self._weights]

    @torch.no_grad()
    def step(self) -> None:
        """Change each weight that has a gradient."""
        moved = [
            (weight, weight.grad, *past)
            for weight, past in zip(self._weights, self._past, strict=True)
            if weight.grad is not None
        ]
        weights, grads, means, squares, steps = ([one[column] for one in moved] for column in range(5))
        adam(
            weights, grads, means, squares, [], steps, fused=self._fused, decoupled_weight_decay=self._decay > 0,
            amsgrad=False, beta1=0.9, beta2=0.999, lr=self.rate, weight_decay=self._decay, eps=1e-8, maximize=False,
        )  # fmt: skip
