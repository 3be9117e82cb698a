"""A replay's query without Spark, for a driver's `ReplayQuery`."""


class NotedQuery:
    """Takes notes of its rates and its stop; is over, or fails, when it is told so, and puts itself into `made`."""

    def __init__(self, order, made, warm=False):
        self.order, self.over, self.fails, self.stopped, self.rates = order, False, None, False, []
        self.newest, self.served_rps = "batch", None
        made.append(self)

    def poll(self):
        if self.fails:
            raise RuntimeError(self.fails)
        return self.over

    def admit(self, rps, may_begin=True, live_s=0.0):
        self.rates.append(rps)

    def pause(self):
        self.rates.append(0.0)

    def measured(self):
        return {"done": 100 if self.over else 10}

    def stop(self):
        self.stopped = True
