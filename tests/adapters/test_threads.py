from __future__ import annotations

import io
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from rlmesh_adapters.apply import images as images_module
from rlmesh_adapters.apply import threads
from rlmesh_adapters.apply.errors import ApplyError
from rlmesh_adapters.apply.images import ImageStage
from rlmesh_adapters.apply.threads import spread
from rlmesh_adapters.plans import ImagePlan

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("cv2")

FILTERS = ("bilinear", "bilinear_aa")

# Said from Python 3.12 on where a process with threads forks, be they OpenCV's.
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")

STEPS: dict[str, dict[str, Any]] = {
    "bilinear": {"size": (224, 224), "fit": "stretch"},
    "bilinear_aa": {"size": (224, 224), "fit": "pad", "resample": "bilinear_aa"},
    "turn": {"flip_rows": True, "flip_columns": True, "dst_layout": "chw"},
    "all": {
        "size": (200, 190),
        "fit": "crop",
        "resample": "bilinear_aa",
        "flip_columns": True,
        "swap_channels": True,
        "dst_layout": "chw",
        "dtype": "float32",
        "normalize": (-1.0, 1.0),
        "mean": (0.1, 0.2, 0.3),
        "std": (0.4, 0.5, 0.6),
    },
}


def stage_of(**options: Any) -> ImageStage:
    return ImageStage(
        ImagePlan(placement=("image",), source=("camera",), role="image/a", bound_role="image/a", **options)
    )


@pytest.fixture(autouse=True)
def many_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work as on a machine of eight cores, and leave no thread behind."""
    monkeypatch.setattr(threads, "_cores", lambda: 8)
    _end_pool()
    yield
    _end_pool()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use threads for frames of any size."""
    monkeypatch.setattr(images_module, "_LEAST_QUICK", 0)
    monkeypatch.setattr(images_module, "_LEAST_SLOW", 0)


def _end_pool() -> None:
    if threads._pool is not None:
        threads._pool.shutdown()
        threads._pool = None


def ours() -> int:
    return sum(thread.name.startswith(threads.NAME) for thread in threading.enumerate())


def without_threads(apply: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(threads, "_cores", lambda: 1)
        return apply()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", STEPS)
def test_threads_change_no_bit(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (np.random.default_rng(0).random((11, 240, 230, 3)) * (255 if dtype == "uint8" else 1)).astype(dtype)
    stage = stage_of(**STEPS[name])
    expected = without_threads(lambda: stage.apply(source, 11), monkeypatch)
    assert ours() == 0
    for _ in range(5):
        assert np.array_equal(stage.apply(source, 11), expected)
    assert 1 <= ours() <= 3


def encoded(pixels: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.mark.usefixtures("always")
def test_encoded_frames_are_decoded_as_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [encoded(image) for image in np.random.default_rng(1).integers(0, 256, (9, 60, 70, 3), np.uint8)]
    stage = stage_of(**STEPS["all"])
    expected = without_threads(lambda: stage.apply(files, 9), monkeypatch)
    assert np.array_equal(stage.apply(files, 9), expected)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("wrong", [(0,), (3,), (5, 2, 7), (8,)])
def test_the_frame_that_fails_first_is_named_and_the_next_batch_is_right(wrong: tuple[int, ...]) -> None:
    good = [encoded(image) for image in np.random.default_rng(2).integers(0, 256, (9, 60, 70, 3), np.uint8)]
    files = [b"GIF89a" if row in wrong else file for row, file in enumerate(good)]
    stage = stage_of(**STEPS["bilinear"])
    expected = stage.apply(good, 9)
    for _ in range(20):
        with pytest.raises(ApplyError, match="expected a PNG or JPEG image, got 6 bytes") as caught:
            stage.apply(files, 9)
        assert list(caught.value.messages) == [min(wrong)]
        assert np.array_equal(stage.apply(good, 9), expected)


@pytest.mark.parametrize(("rows", "side"), [(1, 640), (8, 64), (1, 64)])
def test_one_frame_and_small_frames_start_no_thread(rows: int, side: int) -> None:
    stage = stage_of(size=(32, 32), fit="stretch", resample="bilinear_aa")
    stage.apply(np.zeros((rows, side, side, 3), np.uint8), rows)
    assert ours() == 0
    stage.apply(np.zeros((2, 640, 640, 3), np.uint8), 2)
    assert ours() == 1


def test_every_number_is_worked_on_once():
    seen: list[int] = []
    for count in (0, 1, 2, 50):
        seen.clear()
        spread(seen.append, count)
        assert sorted(seen) == list(range(count))


def test_the_lowest_number_that_failed_is_told():
    def task(number: int) -> None:
        # The first to fail is not the first to say so.
        if number in (3, 4, 5):
            time.sleep(0.05 / number**2)
            raise ValueError(f"number {number}")

    for _ in range(10):
        with pytest.raises(ValueError, match="number 3"):
            spread(task, 9)


def test_a_helper_that_is_late_is_not_waited_for():
    busy = threading.Event()
    with threads._lock:
        pool = threads._started_pool()
    held = [pool.submit(busy.wait, 20) for _ in range(3)]
    began = time.monotonic()
    seen: list[int] = []
    spread(seen.append, 50)
    assert time.monotonic() - began < 10
    assert sorted(seen) == list(range(50))
    busy.set()
    assert all(future.result() for future in held)


def test_an_interruption_ends_the_work_and_is_passed_on():
    def task(number: int) -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        spread(task, 10_000)
    seen: list[int] = []
    spread(seen.append, 9)
    assert sorted(seen) == list(range(9))


def large_result() -> Any:
    source = np.random.default_rng(3).integers(0, 256, (6, 400, 400, 3), dtype=np.uint8)
    # Both libraries; OpenCV has threads of its own.
    return np.stack([stage_of(**{**STEPS["all"], "resample": name}).apply(source, 6) for name in FILTERS])


def send_result(pipe: Any) -> None:
    pipe.send((ours(), large_result().tobytes()))
    pipe.close()


@FORKS
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_process_that_is_started_later_has_threads_of_its_own(method: str) -> None:
    expected = large_result()
    context: Any = multiprocessing.get_context(method)
    ends = [context.Pipe(duplex=False) for _ in range(2)]
    workers = [context.Process(target=send_result, args=(theirs,)) for _, theirs in ends]
    for worker in workers:
        worker.start()
    for (mine, _), worker in zip(ends, workers, strict=True):
        assert mine.poll(60)
        assert mine.recv() == (0, expected.tobytes())
        worker.join()
        assert worker.exitcode == 0
    assert np.array_equal(large_result(), expected)


@FORKS
def test_a_fork_may_come_while_another_thread_works_on_images():
    expected = large_result()
    wrong: list[int] = []
    is_over = threading.Event()

    def keep_on() -> None:
        while not is_over.is_set():
            if not np.array_equal(large_result(), expected):
                wrong.append(1)

    thread = threading.Thread(target=keep_on)
    thread.start()
    context: Any = multiprocessing.get_context("fork")
    try:
        for _ in range(10):
            worker = context.Process(target=time.sleep, args=(0,))
            worker.start()
            worker.join(60)
            assert worker.exitcode == 0
    finally:
        is_over.set()
        thread.join()
    assert wrong == []
