from __future__ import annotations

import threading

from rlmesh_adapters.apply.threads import NAME
from rlmesh_cli.surroundings import Surroundings


def test_only_threads_that_are_not_the_adapters_are_told():
    surroundings = Surroundings()
    is_over = threading.Event()
    threads = [threading.Thread(target=is_over.wait, name=f"{NAME}_0"), threading.Thread(target=is_over.wait)]
    try:
        threads[0].start()
        assert surroundings.changes() == []
        threads[1].start()
        assert surroundings.changes() == ["it started threads"]
    finally:
        is_over.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
