"""Children: what may abort a process, hang, or take long is tried in processes of its own, all at once."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping

import msgspec

#: Seconds after which a child is given up.
SECONDS = 30.0
_LONGEST = 160

#: Name -> the program that a child runs; the last line that it prints is what was found.
PROGRAMS = {
    "core": """
for name in ("numpy", "msgspec", "yaml", "rich", "typer", "gymnasium"):
    try:
        module = __import__(name)
        print("CHECK", name, "ok", getattr(module, "__version__", "-"))
    except BaseException as error:
        print("CHECK", name, "broken", type(error).__name__ + ": " + " ".join(str(error).split()))
""",
    "cartpole": """
import gymnasium
env = gymnasium.make("CartPole-v1")
env.reset(seed=0)
env.step(0)
print("made, reset and stepped")
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
print("a picture of %d x %d" % (frame.shape[1], frame.shape[0]))
""",
    "encoder": """
try:
    import av
    av.codec.Codec("libx264", "w")
    print("libx264, of PyAV")
except Exception:
    import subprocess
    import imageio_ffmpeg
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    asked = [ffmpeg, "-hide_banner", "-encoders"]
    known = subprocess.run(asked, capture_output=True, text=True, timeout=20).stdout
    assert "libx264" in known, ffmpeg + " has no encoder libx264"
    print("libx264, of " + ffmpeg)
""",
}


class Outcome(msgspec.Struct, frozen=True):
    """How a child ended. text: the last line that it printed, or of its error. lines: all that it printed."""

    is_done: bool
    text: str
    lines: tuple[str, ...] = ()


class Children:
    """Children that run at the same time; each is waited for when it is asked about."""

    def __init__(self) -> None:
        self._started: dict[str, subprocess.Popen[str] | OSError] = {}
        self._ended: dict[str, Outcome] = {}
        self._until = time.monotonic() + SECONDS

    def start(self, name: str, program: str, environment: Mapping[str, str] | None = None) -> None:
        """Start a program under a name.

        environment: variables that differ from ours.
        """
        try:
            self._started[name] = subprocess.Popen(
                [sys.executable, "-c", PROGRAMS[program]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={**os.environ, **(environment or {})},
            )
        except OSError as error:
            self._started[name] = error

    def outcome(self, name: str) -> Outcome:
        """Wait for a child, and say how it ended."""
        if name not in self._ended:
            self._ended[name] = self._wait(self._started.pop(name))
        return self._ended[name]

    def _wait(self, child: subprocess.Popen[str] | OSError) -> Outcome:
        if isinstance(child, OSError):
            return Outcome(False, f"no process could be started: {child.strerror}")
        try:
            out, err = child.communicate(timeout=max(0.1, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return Outcome(False, f"no answer within {SECONDS:.0f} s")
        lines = tuple(line.strip() for line in out.splitlines() if line.strip())
        if child.returncode == 0:
            return Outcome(True, lines[-1] if lines else "", lines)
        said = [line.strip() for line in err.splitlines() if line.strip()]
        reason = said[-1] if said else ""
        if child.returncode < 0:
            # What was printed last before an abort is rarely the reason.
            reason = f"the process was ended by signal {-child.returncode}"
        return Outcome(False, reason[:_LONGEST] or f"the process ended with code {child.returncode}", lines)

    def close(self) -> None:
        """End the children that were not waited for."""
        for child in self._started.values():
            if isinstance(child, subprocess.Popen):
                with contextlib.suppress(OSError):
                    child.kill()
                child.communicate()
        self._started.clear()
