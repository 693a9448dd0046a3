"""Children: what may abort a process, hang, or take long is tried in processes of its own, all at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

import msgspec

#: Seconds after which a child is given up.
SECONDS = 30.0
_LONGEST = 160

_MARK = ": "
#: How programs say something: past whatever packages do to standard output, and in a line of its own.
_SAY = f"""
import os

def say(*words):
    text = "\\t".join(" ".join(word.split()) for word in words)
    os.write(1, f"\\n{_MARK}{{text}}\\n".encode("utf-8", "replace"))

"""
#: Name -> the program that a child runs; what it says last is what was found, and a child that does not come to
#: it, however it ends, has found nothing.
PROGRAMS = {
    "core": """
for name in ("numpy", "msgspec", "yaml", "rich", "typer", "gymnasium"):
    try:
        module = __import__("rich.table" if name == "rich" else name)
        say(name, "ok", str(getattr(module, "__version__", "-")))
    except BaseException as error:
        say(name, "broken", type(error).__name__ + ": " + str(error))
say("all were tried")
""",
    "cartpole": """
import gymnasium
env = gymnasium.make("CartPole-v1")
env.reset(seed=0)
env.step(0)
say("made, reset and stepped")
""",
    "gl": """
import mujoco
scene = "<mujoco><worldbody><light pos='0 0 3'/><geom size='.3'/></worldbody></mujoco>"
model = mujoco.MjModel.from_xml_string(scene)
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 48, 64) as renderer:
    renderer.update_scene(data)
    frame = renderer.render()
assert frame.max() > 0, "the picture is black"
say("a picture of %d x %d" % (frame.shape[1], frame.shape[0]))
""",
    "encoder": """
try:
    import av
    av.codec.Codec("libx264", "w")
    say("libx264, of PyAV")
except Exception:
    import subprocess
    import imageio_ffmpeg
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    asked = [ffmpeg, "-hide_banner", "-encoders"]
    known = subprocess.run(asked, capture_output=True, text=True, timeout=20).stdout
    assert "libx264" in known, ffmpeg + " has no encoder libx264"
    say("libx264, of " + ffmpeg)
""",
}


class Outcome(msgspec.Struct, frozen=True):
    """How a child ended. text: what it said last, or why it did not. said: the words of each line that it said."""

    is_done: bool
    text: str
    said: tuple[tuple[str, ...], ...] = ()


class Children:
    """Children that run at the same time; each is waited for when it is asked about."""

    def __init__(self) -> None:
        self._started: dict[str, subprocess.Popen[bytes] | OSError] = {}
        self._ended: dict[str, Outcome] = {}
        self._until = time.monotonic() + SECONDS

    def start(self, name: str, program: str, environment: Mapping[str, str] | None = None) -> None:
        """Start a program under a name.

        environment: variables that differ from ours.
        """
        try:
            self._started[name] = subprocess.Popen(
                [sys.executable, "-c", _SAY + PROGRAMS[program]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                # What it starts itself is ended with it.
                start_new_session=True,
            )
        except OSError as error:
            self._started[name] = error

    def outcome(self, name: str) -> Outcome:
        """Wait for a child, and say how it ended."""
        if name not in self._ended:
            self._ended[name] = self._wait(self._started[name])
            # Only now: whoever is interrupted while it waits ends it by `close`.
            del self._started[name]
        return self._ended[name]

    def _wait(self, child: subprocess.Popen[bytes] | OSError) -> Outcome:
        if isinstance(child, OSError):
            return Outcome(False, f"no process could be started: {child.strerror}")
        try:
            out, err = child.communicate(timeout=max(0.1, self._until - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            # It may have ended, and left something running that holds its output open.
            out, err = error.output or b"", error.stderr or b""
            has_ended = child.poll() is not None
            _end(child)
            if not has_ended:
                return Outcome(False, f"no answer within {SECONDS:.0f} s", _said(out))
        said = _said(out)
        if child.returncode == 0:
            is_done = bool(said) and len(said[-1]) == 1
            return Outcome(is_done, said[-1][0] if is_done else "the process left before it was through", said)
        printed = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
        reason = printed[-1] if printed else ""
        if child.returncode < 0:
            # What was printed last before an abort is rarely the reason.
            reason = f"the process was ended by signal {-child.returncode}"
        return Outcome(False, reason[:_LONGEST] or f"the process ended with code {child.returncode}", said)

    def close(self) -> None:
        """End the children that were not waited for."""
        for child in self._started.values():
            if isinstance(child, subprocess.Popen):
                _end(child)
        self._started.clear()


def _said(output: bytes) -> tuple[tuple[str, ...], ...]:
    """Return the words of each line that a program said, in what it and its packages printed."""
    lines = output.decode("utf-8", "replace").splitlines()
    return tuple(tuple(line.removeprefix(_MARK).split("\t")) for line in lines if line.startswith(_MARK))


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child and what it started, without waiting for whoever holds its output open."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    child.wait()
