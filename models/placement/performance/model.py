"""A trained performance model, how it is trained, and a linear one that it has to beat.

It learns the logarithm of the latency: placements that cannot keep up come to hundreds of times what good ones do, and
beside them those would all look alike. What has the least absolute error is the median, of a logarithm as of its value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn.functional import l1_loss

from models.dqn.learner.threads import one_thread
from models.forecast.neural.adam import Adam
from models.placement.graph import Floats
from models.placement.performance.network import SMALL, LayerSizes, PerformanceNetwork
from models.placement.performance.windows import Samples

RATE, FINE_RATE, BATCH, MOST_EPOCHS, PATIENCE, CLIP = 1e-3, 1e-4, 64, 800, 60, 1.0
FINE_EPOCHS = 5
LEAST_MS, MOST_MS = 0.001, 1e9
"""Latencies that are told apart."""


@dataclass(frozen=True, eq=False)
class PerformanceModel:
    """A trained network with the scales of what it reads and says.

    Attributes:
        network: in evaluation mode.
        sizes: of its layers.
        mean, spread: (1 + m n,) of what it reads; of placements 0 and the slots.
        label_mean, label_spread: (2,) of what it says, of latency of the logarithm.
        stopped: mean absolute errors (2,) on the samples by which training stopped, in ms and load. Where any
            placement cannot keep up, such make up nearly all of the former.
        stopped_log: the same (2,) in what is learned from, log(latency) and load.
    """

    network: PerformanceNetwork
    sizes: LayerSizes
    mean: Floats
    spread: Floats
    label_mean: Floats
    label_spread: Floats
    stopped: Floats
    stopped_log: Floats

    def predict(self, seen: Floats) -> Floats:
        """Return (N, 2) latency in ms and mean load of the step after (N, 4, 1 + m n).

        Raises:
            ValueError: another number of features than the model's: it is of another job or other nodes.
        """
        if seen.shape[-1] != len(self.mean):
            raise ValueError(
                f"{seen.shape[-1]} features: the model was trained on {len(self.mean)}, of another job or other nodes. "
                "Train one for this job"
            )
        scaled = torch.from_numpy(((seen - self.mean) / self.spread).astype(np.float32))
        with torch.no_grad():
            found = self.network(scaled).numpy().astype(float)
        said = found * self.label_spread + self.label_mean
        latency_ms = np.exp(np.clip(said[:, 0], np.log(LEAST_MS), np.log(MOST_MS)))
        return np.column_stack([latency_ms, np.maximum(said[:, 1], 0.0)])

    def error(self, samples: Samples) -> Floats:
        """Return the (2,) mean absolute errors, in ms and load."""
        return absolute_error(self.predict(samples.seen), samples.label)

    def log_errors(self, samples: Samples) -> Floats:
        """Return the (N, 2) absolute errors of what is learned from, log(latency) and load."""
        return np.abs(learned_from(self.predict(samples.seen)) - learned_from(samples.label))

    def scaled_error(self, samples: Samples) -> float:
        """Return the mean of both errors as they are learned from: of log(latency) and load, by their spreads."""
        return float((self.log_errors(samples).mean(axis=0) / self.label_spread).mean())

    def uneven_error(self, samples: Samples) -> float:
        """Return the mean of both errors without what all samples have in common, as `scaled_error` otherwise.

        What is off alike for all placements makes none of them look better than another.
        """
        off = learned_from(self.predict(samples.seen)) - learned_from(samples.label)
        return float((np.abs(off - np.median(off, axis=0)).mean(axis=0) / self.label_spread).mean())


def absolute_error(said: Floats, label: Floats) -> Floats:
    """Return the (2,) mean absolute errors of (N, 2) (eq. 13)."""
    return np.asarray(np.abs(said - label).mean(axis=0))


def learned_from(label: Floats) -> Floats:
    """Return (N, 2) log(latency in ms) and load."""
    return np.column_stack([np.log(np.clip(label[:, 0], LEAST_MS, MOST_MS)), label[:, 1]])


def linear_regression(train: Samples, samples: Samples) -> Floats:
    """Return (N, 2) by least squares over all that the network reads too."""
    from sklearn.linear_model import LinearRegression  # it takes a second to load, and who places fits nothing

    flat = LinearRegression().fit(train.seen.reshape(len(train.seen), -1), train.label)
    return np.asarray(flat.predict(samples.seen.reshape(len(samples.seen), -1)))


def train_performance(
    train: Samples, stop: Samples, slots: int, seed: int, sizes: LayerSizes = SMALL, epochs: int = MOST_EPOCHS
) -> PerformanceModel:  # fmt: skip
    """Train a model; equal arguments give equal models.

    Mean absolute errors of log(latency) and load, Adam, gradients of norm 1 at most. The epoch is kept whose errors on
    `stop` are least; 60 without a lower one end it.

    Args:
        train: samples to learn from; scales are of these alone.
        stop: samples to stop by.
        slots: of a node, the unit of placements.
        seed: of the first weights, of dropout and of batches.
        sizes: of the layers.
        epochs: at most.

    Raises:
        ValueError: too few samples.
    """
    if len(train.seen) < 2 or not len(stop.seen):
        raise ValueError(
            f"{len(train.seen)} samples to train on, {len(stop.seen)} to stop by: two and one are the least"
        )
    torch.manual_seed(seed)
    wide = train.seen.shape[2]
    mean, spread = np.zeros(wide), np.full(wide, float(slots))
    mean[0], spread[0] = train.seen[:, :, 0].mean(), max(train.seen[:, :, 0].std(), 1e-9)
    label = learned_from(train.label)
    label_mean, label_spread = label.mean(axis=0), np.maximum(label.std(axis=0), 1e-9)
    network = PerformanceNetwork(wide, sizes)
    none = np.full(2, np.inf)
    model = PerformanceModel(network, sizes, mean, spread, label_mean, label_spread, stopped=none, stopped_log=none)
    return _fit(model, float("inf"), train, stop, seed, RATE, epochs)


def fine_tune(model: PerformanceModel, train: Samples, stop: Samples, seed: int) -> PerformanceModel:
    """Return the model after five more epochs at a tenth of the rate; the old one where that is no better on `stop`."""
    torch.manual_seed(seed)
    network = PerformanceNetwork(len(model.mean), model.sizes)
    network.load_state_dict(model.network.state_dict())
    before = replace(model, network=network, stopped=model.error(stop), stopped_log=_mean_log_error(model, stop))
    return _fit(before, model.scaled_error(stop), train, stop, seed, FINE_RATE, FINE_EPOCHS)


def _fit(
    model: PerformanceModel, least: float, train: Samples, stop: Samples, seed: int, rate: float, epochs: int
) -> PerformanceModel:  # fmt: skip
    """Train while the scaled error on `stop` falls below the least so far."""
    seen = torch.from_numpy(((train.seen - model.mean) / model.spread).astype(np.float32))
    label = torch.from_numpy(((learned_from(train.label) - model.label_mean) / model.label_spread).astype(np.float32))
    network, chance = model.network, np.random.default_rng(seed)
    optimizer = Adam(network.parameters(), rate)
    errors, logs, waited = model.stopped, model.stopped_log, 0
    best = {name: part.clone() for name, part in network.state_dict().items()}
    with one_thread():
        for _ in range(epochs):
            network.train()
            for rows in np.array_split(chance.permutation(len(seen)), max(len(seen) // BATCH, 1)):
                network.zero_grad()
                l1_loss(network(seen[rows]), label[rows]).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP)
                optimizer.step()
            network.eval()
            now = model.scaled_error(stop)
            if now < least:
                least, errors, logs, waited = now, model.error(stop), _mean_log_error(model, stop), 0
                best = {name: part.clone() for name, part in network.state_dict().items()}
            elif (waited := waited + 1) >= PATIENCE:
                break
    network.load_state_dict(best)
    network.eval()
    return replace(model, stopped=errors, stopped_log=logs)


def _mean_log_error(model: PerformanceModel, samples: Samples) -> Floats:
    return np.asarray(model.log_errors(samples).mean(axis=0))
