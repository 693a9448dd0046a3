"""Converting: from a route's documents to the adapter that runs it, and what the reader should know of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .adapter import Adapter
from .advisories import AdvisoryBook
from .contract import Ensemble, RouteContract
from .corners import Corner
from .describe import describe
from .documents.filling import fill_statistics
from .documents.reading import read_spec
from .documents.schema import DocumentError
from .documents.spec import ModelSpec
from .ensembles import Ensembler
from .errors import LoadError, RouteError, faults_suppressed
from .plan_records import conversion_record
from .resolve.resolving import Resolved, resolve


def spec_of(policy: object) -> ModelSpec | None:
    """Return the model spec that a policy carries as `spec`, None if it has none.

    Raises DocumentError for one that cannot be meant.
    """
    spec: Any = None
    with faults_suppressed():  # a user's property may raise anything
        spec = getattr(policy, "spec", None)
    is_document = isinstance(spec, (Mapping, ModelSpec)) or callable(getattr(spec, "to_dict", None))
    if not is_document or isinstance(spec, type):
        return None
    try:
        return read_spec(spec)
    except DocumentError as error:
        raise DocumentError(
            error.cause,
            path=(f"{type(policy).__name__}.spec", *error.path),
            mend=error.mend or "correct it in the policy's spec; `rlmesh explain` reads it without a step",
        ) from None


def resolve_route(policy: object, contract: RouteContract) -> Resolved | None:
    """Return the plans of a route, None for one without conversion.

    Raises ResolveError and DocumentError for documents that do not go together, RouteError and LoadError where
    one side is missing.
    """
    spec = contract.spec or spec_of(policy) or contract.env_spec
    if spec is None:
        if contract.tags is not None and contract.are_required:
            raise RouteError(
                "the route has env tags, but neither it nor the policy has a model spec",
                where="env_tags",
                mend="add `model_spec` to the route, give the policy a `spec`, or drop `env_tags`",
            )
        return None
    if contract.tags is None:
        raise LoadError(
            "there is a model spec, but the environment is not tagged",
            where="model_spec" if contract.spec is not None else f"{type(policy).__name__}.spec",
            mend="add `env_tags` to the route, or tag the environment in its metadata",
        )
    if contract.read_statistics is not None:
        spec = fill_statistics(spec, contract.read_statistics)
    return resolve(
        contract.tags,
        contract.observation,
        contract.action,
        spec,
        import_function=contract.import_function,
    )


class Conversion(msgspec.Struct, frozen=True):
    """What stands between an environment and a policy.

    adapter: None hands everything on as it is. ensembler: None executes chunks one after the other.
    description: the adapter's plans as text. record: their numbers, see `conversion_record`.
    """

    adapter: Adapter | None
    ensembler: Ensembler | None
    description: str = ""
    record: dict[str, Any] = {}


def convert_route(policy: object, corner: Corner, contract: RouteContract, book: AdvisoryBook) -> Conversion:
    """Return the conversion of a route, and note what it substitutes, leaves out or assumes.

    Raises what `resolve_route` and `check_ensemble` raise.
    """
    resolved = resolve_route(policy, contract)
    ensemble = contract.ensemble
    if ensemble is not None:
        check_ensemble(ensemble, resolved, contract, is_chunked=corner.is_chunked)
    ensembler = None if ensemble is None else Ensembler(ensemble.decay, contract.horizon)
    if resolved is None:
        if contract.tags is not None:
            message = "the environment is tagged, but the policy has no model spec: it sees raw observations"
            book.add("tags-unused", "info", message)
        return Conversion(None, ensembler)
    _check_references(resolved, contract, corner)
    for note in resolved.notes:
        book.add(note.code, note.severity, note.message, subject=note.message)
    adapter = Adapter(resolved, contract.action)
    return Conversion(adapter, ensembler, describe(resolved), conversion_record(resolved))


def _check_references(resolved: Resolved, contract: RouteContract, corner: Corner) -> None:
    """Refuse to convert later actions of a chunk with what was observed before its first."""
    roles = [segment.role for segment in resolved.action.segments if segment.reference is not None]
    if roles and contract.horizon > 1 and corner.is_chunked:
        raise RouteError(
            f'action role "{roles[0]}" is converted between absolute and delta with the current observation, '
            f"which the later actions of a chunk do not have (horizon {contract.horizon})",
            where="horizon",
            mend="use --horizon 1, or let both sides speak the same mode",
        )


def check_ensemble(
    ensemble: Ensemble, resolved: Resolved | None, contract: RouteContract, *, is_chunked: bool
) -> None:
    """Refuse to average what has no average.

    Raises RouteError for a route without chunks, and for rotations, snapped and discrete components.
    """
    if not ensemble.decay >= 0:
        raise RouteError(
            f"a decay of {ensemble.decay:g} would let later plans outweigh all others",
            where="ensemble.decay",
            mend="give 0 or more",
        )
    if contract.horizon < 2 or not is_chunked:
        raise RouteError(
            f"there is nothing to average: horizon is {contract.horizon}"
            + ("" if is_chunked else ", and the policy has no chunk corner"),
            where="ensemble",
            mend="give a horizon over 1 and a policy with predict_chunk, or drop `ensemble`",
        )
    dtype = contract.action.dtype
    if contract.action.kind != "box" or dtype is None or dtype.kind != "f":
        raise RouteError(
            f"actions of {contract.action} have no average",
            where="ensemble",
            mend="drop `ensemble`",
        )
    for segment in () if resolved is None else resolved.action.segments:
        what = "a rotation" if segment.dst_encoding else "snapped to -1 and +1" if segment.is_binary else ""
        if what and segment.role not in ensemble.linear:
            raise RouteError(
                f'action role "{segment.role}" is {what}, which has no average',
                where="ensemble",
                mend=f'add "{segment.role}" to `ensemble.linear` if it may be averaged all the same',
            )
