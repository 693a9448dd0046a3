"""Resolving: tags, spaces and a model spec in, an adapter's plans out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from rlmesh_adapters.documents.actions import Action
from rlmesh_adapters.documents.schema import Record
from rlmesh_adapters.documents.spec import Concat, Custom, Image, ModelSpec, Text
from rlmesh_adapters.documents.tags import EnvTags
from rlmesh_adapters.documents.trees import Tree, UnknownLeaf, leaves_of
from rlmesh_adapters.paths import NodePath, show_path
from rlmesh_adapters.plans import ActionPlan, CustomPlan, ImagePlan, ObservationPlan, StatePlan, TextPlan
from rlmesh_adapters.roles import nearest_role, quoted
from rlmesh_adapters.spaces import SpaceView

from .actions import plan_action
from .errors import ResolveError
from .features import Features, Note
from .images import plan_image
from .join import join
from .states import plan_state

#: Name of a function -> the function; raises where it cannot be had.
Importer = Callable[[str], Callable[[Any], Any]]


class Resolved(msgspec.Struct, frozen=True):
    """What a route comes to.

    skeleton: the model's input, with the number of a plan at each leaf. plans: of the leaves. action: see there.
    notes: what the reader should know, in order. unused: roles of the environment that the model does not ask for.
    """

    skeleton: Tree
    plans: tuple[ObservationPlan, ...]
    action: ActionPlan
    notes: tuple[Note, ...]
    unused: tuple[str, ...]

    @property
    def stacks(self) -> dict[str, int]:
        """Inputs that are windows of several frames -> how many."""
        return {
            show_path(plan.placement): plan.stack
            for plan in self.plans
            if isinstance(plan, (ImagePlan, StatePlan)) and plan.stack > 1
        }


def resolve(
    tags: EnvTags,
    observation: SpaceView,
    action: SpaceView,
    spec: ModelSpec,
    *,
    import_function: Importer | None = None,
) -> Resolved:
    """Bring an environment's tags and spaces together with what a model wants.

    import_function: gives the function of a custom input that is only named; without it such inputs are refused.

    Raises ResolveError for all that can be decided before the first step.
    """
    _read_door(tags, spec)
    features = join(tags, observation, action)
    _check_duplicates(features)
    plans: list[ObservationPlan] = []
    notes = _note_unknown(spec, features)
    skeleton = _plan_tree(spec.input, (), features, plans, notes, import_function)
    action_plan, action_notes = plan_action(spec.output, features, action)
    notes += action_notes
    ordered = sorted((note for note in notes if note.is_dropped), key=lambda note: note.message)
    rest = [note for note in notes if not note.is_dropped]
    every = (*ordered, *features.notes, *rest, *_plan_notes(plans))
    return Resolved(skeleton, tuple(plans), action_plan, tuple(every), _unused(features, plans))


def _read_door(tags: EnvTags, spec: ModelSpec) -> None:
    """Refuse unknown fields on both sides: they may mean something that we would do wrong."""
    for path, leaf in leaves_of(tags.observation):
        _refuse_bare(leaf, f'feature "{show_path(path)}"', "env_tags.observation")
    _refuse_bare_actuators(tags.action, "env_tags.action")
    for path, leaf in leaves_of(spec.input):
        if isinstance(leaf, UnknownLeaf):
            raise ResolveError(
                "UnsupportedKind",
                f'model input "{show_path(path)}" is of unrecognized kind "{leaf.type}"',
                where="model_spec.input",
                mend='use one of ["custom", "image", "state", "text"]',
            )
        _refuse_bare(leaf, f'model input "{show_path(path)}"', "model_spec.input")
    _refuse_bare_actuators(spec.output, "model_spec.output")


def _refuse_bare(leaf: Record, name: str, where: str) -> None:
    bare = [] if isinstance(leaf, UnknownLeaf) else leaf.bare_fields()
    if not bare:
        return
    mend = f"known here: {', '.join(leaf.field_names())}; prefix it with x- if it is for others"
    if isinstance(leaf, Image) and "size" in bare:
        mend = "write `height` and `width`; `size` is short for them in Python only"
    raise ResolveError(
        "UnsupportedKind", f'{name} declares unrecognized field "{bare[0]}"', where=where, mend=mend
    )


def _refuse_bare_actuators(action: Action, where: str) -> None:
    for number, part in enumerate(action.components):
        role = f' (role "{part.role}")' if part.role else ""
        _refuse_bare(part, f"action component[{number}]{role}", where)


def _check_duplicates(features: Features) -> None:
    for what, roles in (
        ("image", [image.role for image in features.images]),
        ("state", [state.role for state in features.states]),
        ("text", [text.role for text in features.texts]),
    ):
        times = Counter(roles)
        twice = [role for role, count in times.items() if count > 1]
        if twice:
            raise ResolveError(
                "Duplicate",
                f'{what} role "{twice[0]}" stands {times[twice[0]]} times in the env tags',
                where="env_tags.observation",
                mend="give each its own role",
            )


def _note_unknown(spec: ModelSpec, features: Features) -> list[Note]:
    known = {image.role for image in features.images} | {state.role for state in features.states}
    wanted = set(_wanted_roles(spec)) - known - {text.role for text in features.texts}
    notes = []
    for leaf in features.unknown:
        if leaf.role in wanted:
            raise ResolveError(
                "UnsupportedKind",
                f'the env offers role "{leaf.role}" only as unrecognized kind "{leaf.kind}"',
                where=f"env_tags.observation.{show_path(leaf.source)}",
                mend="tag it as image, state or text",
            )
        role = f' (role "{leaf.role}")' if leaf.role else ""
        notes.append(
            Note(
                "feature-ignored",
                "info",
                f'env feature "{show_path(leaf.source)}"{role}: unrecognized kind "{leaf.kind}"; '
                "ignored (no model input requires it)",
                is_dropped=True,
            )
        )
    return notes


def _wanted_roles(spec: ModelSpec) -> Iterator[str]:
    for _, leaf in leaves_of(spec.input):
        if isinstance(leaf, Concat):
            yield from (part.role for part in leaf.components)
        elif isinstance(leaf, (Image, Text)):
            yield leaf.role


def _plan_tree(
    tree: Tree,
    path: NodePath,
    features: Features,
    plans: list[ObservationPlan],
    notes: list[Note],
    import_function: Importer | None,
) -> Tree:
    """Plan the leaves of a tree; return it with the numbers of their plans in their place."""
    if isinstance(tree, dict):
        return {
            key: _plan_tree(inner, (*path, key), features, plans, notes, import_function)
            for key, inner in tree.items()
        }
    if isinstance(tree, tuple):
        return tuple(
            _plan_tree(inner, (*path, position), features, plans, notes, import_function)
            for position, inner in enumerate(tree)
        )
    plan: ObservationPlan
    found: list[Note] = []
    if isinstance(tree, Image):
        plan, found = plan_image(tree, path, features)
    elif isinstance(tree, Concat):
        plan, found = plan_state(tree, path, features)
    elif isinstance(tree, Text):
        plan = _plan_text(tree, path, features)
    else:
        plan = _plan_custom(tree, path, import_function)
    plans.append(plan)
    notes.extend(found)
    return len(plans) - 1


def _plan_text(leaf: Text, path: NodePath, features: Features) -> TextPlan:
    found = next((text for text in features.texts if text.role == leaf.role), None)
    if found is None and leaf.fill is None:
        roles = [text.role for text in features.texts]
        near = nearest_role(leaf.role, roles)
        raise ResolveError(
            "MissingRole",
            f'model input "{show_path(path)}" needs text role "{leaf.role}" but the env only has {quoted(roles)}',
            where="model_spec.input",
            mend=f'did you mean "{near}"?' if near else "tag it, or give `fill`",
        )
    source = None if found is None else found.source
    return TextPlan(placement=path, source=source, role=leaf.role, container=leaf.container, fill=leaf.fill)


def _plan_custom(leaf: Custom, path: NodePath, import_function: Importer | None) -> CustomPlan:
    if callable(leaf.transform):
        name = getattr(leaf.transform, "__name__", type(leaf.transform).__name__)
        return CustomPlan(placement=path, transform=leaf.transform, reference=name)
    if import_function is None or ":" not in leaf.transform or leaf.transform.startswith("host:"):
        raise ResolveError(
            "UntrustedEntrypoint",
            f'model input "{show_path(path)}": custom transform "{leaf.transform}" is not run from a document',
            where="model_spec.input",
            mend="give the function itself, in the policy's own spec, or use --trust-entrypoints",
        )
    return CustomPlan(placement=path, transform=import_function(leaf.transform), reference=leaf.transform)


def _plan_notes(plans: list[ObservationPlan]) -> Iterator[Note]:
    for plan in plans:
        absent = sum(piece.source is None for piece in plan.pieces) if isinstance(plan, StatePlan) else 0
        if absent:
            yield Note(
                "state-zero-filled",
                "caution",
                f'state "{show_path(plan.placement)}": {absent} component(s) zero-filled for an absent env role',
            )
        if not isinstance(plan, ImagePlan):
            continue
        name = f'image "{show_path(plan.placement)}"'
        if plan.zero_fill is not None:
            yield Note(
                "camera-zero-filled",
                "caution",
                f"{name}: the env provides no source camera; using a blank (zero) frame",
            )
            continue
        height, width, _ = plan.src_shape
        changes = plan.size is not None and height * plan.size[1] != width * plan.size[0]
        if plan.fit == "crop" and changes:
            yield Note("camera-cropped", "info", f"{name}: an aspect crop drops pixels at the edges")
        if plan.fit == "pad" and changes:
            yield Note("camera-padded", "info", f"{name}: padding adds black borders")


def _unused(features: Features, plans: list[ObservationPlan]) -> tuple[str, ...]:
    used: set[str] = set()
    for plan in plans:
        if isinstance(plan, ImagePlan):
            used.add(plan.bound_role)
        elif isinstance(plan, StatePlan):
            used.update(piece.role for piece in plan.pieces)
        elif isinstance(plan, TextPlan):
            used.add(plan.role)
    roles = [image.role for image in features.images] + [state.role for state in features.states]
    roles += [text.role for text in features.texts]
    return tuple(role for role in roles if role not in used)
