"""Like a Torch module that was left in training mode: noisy in it, right on Echo out of it."""

#: Every policy that was made, for whoever looks afterwards.
MADE = []


class Module:
    def __init__(self, *parts, training=True):
        self.parts, self.training = parts, training

    def modules(self):
        yield self
        for part in self.parts:
            yield from part.modules()

    def train(self, mode=True):
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)


class Policy:
    def __init__(self, fails_at=None):
        self.frozen = Module(training=False)
        self.net = Module(Module(), self.frozen)
        self.fails_at = fails_at
        MADE.append(self)

    def predict(self, obs):
        if obs[0] == self.fails_at:
            raise ArithmeticError("the net has exploded")
        return int(obs[0]) + 9 * any(module.training for module in self.net.modules())
