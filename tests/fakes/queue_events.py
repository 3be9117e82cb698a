"""A network of queues, event by event: the reference of the twin of many operators. Every record is one of its own."""

import heapq
from collections import deque

import numpy as np

COME, DONE = 0, 1


class Events:
    """Queues with some servers each; exponential service; records go on by `route`, after a delay."""

    def __init__(self, servers, service_s, route, seed):
        """`route(random, queue)` gives the next queue and the delay to it, or None; queues are numbered."""
        self.servers, self.service_s, self.route = servers, service_s, route
        self.random, self.waiting, self.busy = (
            np.random.default_rng(seed),
            [deque() for _ in servers],
            [0] * len(servers),
        )
        self.events, self.number = [], 0

    def put(self, at, kind, queue, born):
        self.number += 1
        heapq.heappush(self.events, (at, self.number, kind, queue, born))

    def run(self, arrivals_rps, first, until_s, from_s=0.0):
        """Mean seconds that records were there that end after `from_s`, and how many a second did; first: a queue."""
        self.put(self.random.exponential(1 / arrivals_rps), COME, first, None)
        found = []
        while self.events:
            at, _, kind, queue, born = heapq.heappop(self.events)
            if at > until_s:
                break
            if kind == COME:
                if born is None:
                    born = at
                    self.put(at + self.random.exponential(1 / arrivals_rps), COME, first, None)
                self.waiting[queue].append(born)
            else:
                self.busy[queue] -= 1
                onward = self.route(self.random, queue)
                if onward is None:
                    found += [at - born] if at >= from_s else []
                else:
                    self.put(at + onward[1], COME, onward[0], born)
            while self.waiting[queue] and self.busy[queue] < self.servers[queue]:
                self.busy[queue] += 1
                self.put(
                    at + self.random.exponential(self.service_s[queue]), DONE, queue, self.waiting[queue].popleft()
                )
        return np.mean(found), len(found) / (until_s - from_s)
