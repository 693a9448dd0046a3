"""The v1 documents: what an environment gives (env tags) and what a model wants (model spec).

One schema reads YAML and JSON values and checks what is written in Python. `docs/adapters.md` says what each field
means.
"""
