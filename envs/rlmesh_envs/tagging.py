"""Tagging: an environment says in its metadata what it gives and what drives it."""

from __future__ import annotations

from typing import Any, TypeVar

import gymnasium as gym

from rlmesh_adapters.contract import TAGS_KEY
from rlmesh_adapters.documents.publishing import published
from rlmesh_adapters.documents.reading import read_tags
from rlmesh_adapters.resolve.join import join

from .metadata import metadata_of
from .spaces import view_of

_E = TypeVar("_E", bound=gym.Env[Any, Any])


def tag(env: _E, tags: Any) -> _E:
    """Put env tags into an environment's metadata, and return the environment.

    tags: EnvTags, a mapping, JSON text, or an object with `to_dict()`.

    Raises DocumentError for tags that cannot be meant or hold what nobody here knows, ResolveError where they do
    not fit the environment's spaces.
    """
    read = read_tags(tags)
    plain = published(read)
    join(read, view_of(env.observation_space), view_of(env.action_space))
    # The dict may be the class's own, which other environments share.
    env.metadata = {**metadata_of(env), TAGS_KEY: plain}
    return env
