"""A module that is itself the policy: recurrent, and right on Echo if lanes do not share it."""

calls = 0


def reset():
    global calls
    calls = 0


def predict(obs):
    global calls
    calls += 1
    return calls - 1
