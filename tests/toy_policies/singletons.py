"""Recurrent policies of which there is only one: right on Echo if lanes do not share them."""


class Counting:
    calls = 0

    def reset(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        return self.calls - 1


agent = Counting()


def make_policy():
    return agent
