"""`rlmesh eval`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader

from .options import OUTPUT, AsJson, EnvArgs, EnvId, Horizon, Policy, PolicyArgs, RouteFile, TrustEntrypoints

_RUN = "Run"
_LANES = "Lanes and workers"
_LIMITS = "Limits"
_JUDGE = "Judgement"


def eval_command(
    policy: Policy = None,
    route: RouteFile = None,
    env: EnvId = None,
    env_arg: EnvArgs = None,
    policy_arg: PolicyArgs = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", "-n", help="Episodes to play (default 50).", rich_help_panel=_RUN)
    ] = None,
    num_envs: Annotated[
        int | None,
        typer.Option("--num-envs", help="Lanes played side by side (default 1).", rich_help_panel=_LANES),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            help="Processes that play, each with a policy and --num-envs lanes of its own (default 1).",
            rich_help_panel=_LANES,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="Let workers play on a Ray cluster: ray (on this machine), host:port or ray://host:port.",
            rich_help_panel=_LANES,
        ),
    ] = None,
    ray_resources: Annotated[
        str | None,
        typer.Option(
            "--ray-resources", help="Of each worker on the cluster, such as cpu=2,gpu=1.", rich_help_panel=_LANES
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of episode 0; counts up (default 0).", rich_help_panel=_RUN)
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="One seed an episode: 3,1,4 or 11..15.", rich_help_panel=_RUN),
    ] = None,
    horizon: Horizon = None,
    max_episode_steps: Annotated[
        int | None,
        typer.Option("--max-episode-steps", help="Replaces the environment's own limit.", rich_help_panel=_LIMITS),
    ] = None,
    max_episode_seconds: Annotated[
        float | None,
        typer.Option("--max-episode-seconds", help="Ends an episode by the clock.", rich_help_panel=_LIMITS),
    ] = None,
    vectorization: Annotated[
        str | None,
        typer.Option(
            "--vectorization", help="sync, async (processes) or native (default sync).", rich_help_panel=_LANES
        ),
    ] = None,
    start_method: Annotated[
        str | None,
        typer.Option(
            "--start-method", help="fork, forkserver or spawn, for async and --workers.", rich_help_panel=_LANES
        ),
    ] = None,
    env_workers: Annotated[
        int | None,
        typer.Option(
            "--env-workers", help="Worker processes, for async (default: one a core).", rich_help_panel=_LANES
        ),
    ] = None,
    autoreset: Annotated[
        str | None,
        typer.Option(
            "--autoreset",
            help="Use gymnasium's own vector environment: next_step, same_step or disabled.",
            rich_help_panel=_LANES,
        ),
    ] = None,
    instances: Annotated[
        str | None,
        typer.Option(
            "--instances",
            help="Policy objects: shared, lane, episode (a new one each) or auto, by the probe (default auto).",
            rich_help_panel=_LANES,
        ),
    ] = None,
    success: Annotated[
        str | None,
        typer.Option(
            "--success",
            help="KEY, KEY:any, or 'return >= X' (default is_success or success, last value).",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Info key of a number to report; repeat.", rich_help_panel=_JUDGE),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", help="Bar to meet, such as 'success_rate >= 0.9'; repeat.", rich_help_panel=_JUDGE),
    ] = None,
    gate_on: Annotated[
        str | None,
        typer.Option(
            "--gate-on",
            help="Hold gates against the value, or the worse end of its interval: lower (default value).",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval", help="Of a rate: exact, wilson or blaker (default exact).", rich_help_panel=_JUDGE
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            help="Stop early: 'width<0.1' of the success interval, or decided, when every bar is.",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="Run that this one must not be worse than.", rich_help_panel=_JUDGE),
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            "--margin",
            help="How much worse than the baseline is as good: 5%, return=10 (default 5%); repeat.",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            help="Error rate of the judgement against the baseline (default 0.05).",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", help="Field in which baseline and run may differ; repeat.", rich_help_panel=_JUDGE
        ),
    ] = None,
    controls: Annotated[
        str | None,
        typer.Option(
            "--controls",
            help="Play the same episodes with built-in policies too: random,zero,hold.",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="Of intervals (default 0.95).", rich_help_panel=_JUDGE)
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            help="Play what a run lacks: its folder, or auto for the newest unfinished one of this evaluation.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    extend: Annotated[
        int | None,
        typer.Option("--extend", help="With --resume: add so many episodes.", rich_help_panel=_RUN),
    ] = None,
    max_errors: Annotated[
        int | None,
        typer.Option("--max-errors", help="Stop once more episodes have errored.", rich_help_panel=_LIMITS),
    ] = None,
    step_timeout: Annotated[
        float | None,
        typer.Option(
            "--step-timeout", help="Seconds after which a step or reset is an error.", rich_help_panel=_LIMITS
        ),
    ] = None,
    call_timeout: Annotated[
        float | None,
        typer.Option(
            "--call-timeout", help="Seconds after which a policy call is an error.", rich_help_panel=_LIMITS
        ),
    ] = None,
    batch_rows: Annotated[
        int | None,
        typer.Option(
            "--batch-rows", help="Pad every batched policy call to so many rows.", rich_help_panel=_LANES
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            help="Start episodes where chunks end, or at once: aligned, eager (default aligned).",
            rich_help_panel=_LANES,
        ),
    ] = None,
    pixels: Annotated[
        str | None,
        typer.Option(
            "--pixels",
            help="Render only what a chunked policy reads, or every step: wanted, always (default wanted).",
            rich_help_panel=_LANES,
        ),
    ] = None,
    verify_lanes: Annotated[
        int | None,
        typer.Option(
            "--verify-lanes", help="Play so many episodes again on one lane, and compare.", rich_help_panel=_JUDGE
        ),
    ] = None,
    no_probe: Annotated[
        bool,
        typer.Option(
            "--no-probe", help="Do not test, before lanes share a policy, whether they may.", rich_help_panel=_RUN
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Run what the probe refuses; the run says so.", rich_help_panel=_RUN),
    ] = False,
    trust_entrypoints: TrustEntrypoints = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Cautions count as a missed bar.", rich_help_panel=_JUDGE)
    ] = False,
    record: Annotated[
        str | None,
        typer.Option(
            "--record",
            help="Keep what passed in each episode, and what it looked like: steps, video, or steps,video.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    video: Annotated[
        str | None,
        typer.Option(
            "--video",
            help="Record videos of these episodes: all, failures, first:N, worst:N or flips:RUN.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder that the run's own folder is put into.", rich_help_panel=OUTPUT)
    ] = Path("runs"),
    show_all: Annotated[bool, typer.Option("--all", help="List every episode.", rich_help_panel=OUTPUT)] = False,
    as_json: AsJson = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Print only what was missed and where the run is.", rich_help_panel=OUTPUT
        ),
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", help="Write bars and errored episodes as JUnit XML.", rich_help_panel=OUTPUT),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            envvar="GITHUB_STEP_SUMMARY",
            help="Write the result as a page of markdown.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write a line for each episode.", rich_help_panel=OUTPUT)
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Write report.html into the run's folder.", rich_help_panel=OUTPUT)
    ] = False,
    report_file: Annotated[
        Path | None, typer.Option("--report-file", help="Write that page here instead.", rich_help_panel=OUTPUT)
    ] = None,
) -> None:
    """Score a policy: play seeded episodes, print what happened, write the run.

    Examples:
      rlmesh eval policy.py --env CartPole-v1 --num-envs 8
      rlmesh eval --route route.yaml --gate "success_rate >= 0.9"
      rlmesh eval random --env FrozenLake-v1 --success "return >= 1"
    """
    from rlmesh_cli.evaluation_command import Request, run  # noqa: PLC0415 - gymnasium and numpy start with it

    with quiet_without_reader():
        code = run(
            Request(
                policy=policy,
                route=route,
                env=env,
                env_args=tuple(env_arg or ()),
                policy_args=tuple(policy_arg or ()),
                episodes=episodes,
                num_envs=num_envs,
                workers=workers,
                cluster=cluster,
                ray_resources=ray_resources,
                seed=seed,
                seeds=seeds,
                horizon=horizon,
                max_episode_steps=max_episode_steps,
                max_episode_seconds=max_episode_seconds,
                vectorization=vectorization,
                start_method=start_method,
                env_workers=env_workers,
                autoreset=autoreset,
                instances=instances,
                success=success,
                metrics=tuple(metric or ()),
                gates=tuple(gate or ()),
                strict=strict,
                out=out,
                show_all=show_all,
                as_json=as_json,
                quiet=quiet,
                gate_on=gate_on,
                interval=interval,
                until=until,
                baseline=baseline,
                margins=tuple(margin or ()),
                alpha=alpha,
                allowed=tuple(allow or ()),
                controls=controls,
                confidence=confidence,
                resume=resume,
                extend=extend,
                max_errors=max_errors,
                step_timeout=step_timeout,
                call_timeout=call_timeout,
                batch_rows=batch_rows,
                schedule=schedule,
                pixels=pixels,
                verify_lanes=verify_lanes,
                record=record,
                video=video,
                trusts_entrypoints=trust_entrypoints,
                is_probed=not no_probe,
                is_forced=force,
                junit=junit,
                summary=summary,
                csv=csv,
                report=report,
                report_file=report_file,
            )
        )
    raise typer.Exit(int(code))
