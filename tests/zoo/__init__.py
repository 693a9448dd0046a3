"""A zoo of policies: each faulty one keeps, mixes or breaks something of its own; clean ones only look odd."""
