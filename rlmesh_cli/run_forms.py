"""Forms: the fields of `run.json` and `summary.json` that readers rely on, with their types.

What else there is, they pass on; what is not there, older runs lack.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from rlmesh_adapters.advisories import Advisory

from .control_results import ControlResult
from .gates import GateVerdict
from .schema import Count, NonNegative, SuccessRoute


class _EnvRoute(msgspec.Struct, frozen=True):
    id: str
    kwargs: dict[str, Any] = {}
    wrappers: list[Any] = []


class _PolicyRoute(msgspec.Struct, frozen=True):
    source: str = ""
    params: dict[str, Any] | None = None


class _File(msgspec.Struct, frozen=True):
    path: str
    sha256: str
    bytes: NonNegative | None = None


class _Route(msgspec.Struct, frozen=True):
    env: _EnvRoute
    policy: _PolicyRoute
    horizon: int = 1
    ensemble: dict[str, Any] | None = None
    success: SuccessRoute | None = None
    metrics: list[str] = []
    gates: list[str] = []
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95
    interval: Literal["exact", "wilson", "blaker"] = "exact"
    gate_on: Literal["value", "lower"] = "value"
    until: str | None = None


class _PolicyFacts(msgspec.Struct, frozen=True):
    label: str = ""
    corner: str = ""
    instances: Literal["shared", "lane", "episode"] = "shared"
    file: _File | None = None
    weights: list[_File] | None = None
    chunk_length: int | None = None


class _EnvFacts(msgspec.Struct, frozen=True):
    id: str
    lanes: Count = 1
    layers: list[str] = []
    files: list[_File] = []
    autoreset: str | None = None
    observation_space: str = ""
    action_space: str = ""


class _Probe(msgspec.Struct, frozen=True):
    tests: list[dict[str, Any]] | None = None


class _Sitting(msgspec.Struct, frozen=True):
    argv: list[Any] | None = None
    played: NonNegative | None = None


class _Actuator(msgspec.Struct, frozen=True):
    values: NonNegative = 0
    clipped: NonNegative = 0
    saturated: NonNegative = 0


class RecordForm(msgspec.Struct, frozen=True):
    """Of `run.json`."""

    status: str
    started_at: str
    route: _Route
    seeds: list[int]
    success_rule: str
    env: _EnvFacts
    policy: _PolicyFacts
    seeded: bool = True
    failure: str | None = None
    stopping_rule: str | None = None
    stopped_at: int | None = None
    finished_at: str | None = None
    route_file: str | None = None
    modules: list[_File] = []
    metrics: list[str] = []
    probe: _Probe | None = None
    adapter: list[str] | None = None
    limits: dict[str, float | None] = {}
    advisories: list[Advisory] = []
    versions: dict[str, str] = {}
    argv: list[Any] | None = None
    sessions: list[_Sitting] | None = None
    actuators: list[_Actuator] | None = None
    host: dict[str, Any] | None = None
    git: dict[str, Any] | None = None


class _Time(msgspec.Struct, frozen=True):
    total: float = 0.0
    workers: Count = 1
    env_step: float = 0.0
    env_reset: float = 0.0
    policy: float = 0.0
    adapter: float = 0.0
    recording: float = 0.0
    steps: int = 0
    vector_steps: int = 0
    calls: int = 0
    call_rows: int = 0
    frames_skipped: int = 0


class _Claim(msgspec.Struct, frozen=True):
    verdict: Literal["not_worse", "worse", "inconclusive"]
    sentence: str


class _BaselineRun(msgspec.Struct, frozen=True):
    run: str


class _Baseline(msgspec.Struct, frozen=True):
    claim: _Claim
    base: _BaselineRun


class _Parting(msgspec.Struct, frozen=True):
    index: int
    seed: int | None
    step: int | None
    leaf: str
    dimension: list[int] | None
    values: tuple[Any, Any]
    length: tuple[int, int]
    return_: tuple[float | None, float | None] = msgspec.field(name="return")


class _Verification(msgspec.Struct, frozen=True):
    verdict: str
    episodes: int
    first: _Parting | None = None


class SummaryForm(msgspec.Struct, frozen=True):
    """Of `summary.json`; the counts were beside `time` before they were in it."""

    instances: Literal["shared", "lane", "episode"] = "shared"
    in_flight: int = 0
    time: _Time = _Time()
    steps: int = 0
    vector_steps: int = 0
    calls: int = 0
    call_rows: int = 0
    gates: list[GateVerdict] = []
    baseline: _Baseline | None = None
    controls: list[ControlResult] | None = None
    verification: _Verification | None = None
