"""The engine of this machine's GPU: records go to the device once, integers come back.

Arrays that lie on the device are worked on in place. Those in memory, and memory maps,
pass through two page-locked buffers: while one is being filled, the other is on its way
to the device, and the block before is worked on there. Noise is drawn by the account,
on the host.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.data.batching import REAL
from spdp.data.source import Source
from spdp.engines.local import LocalEngine, LocalStore
from spdp.engines.store import Task, VectorStore
from spdp.errors import ParameterError
from spdp.kernels.base import working_dtype

STAGE_BYTES = 64 << 20  # of one page-locked buffer
COPIERS = 4  # threads that fill it: one alone is slower than the transfer
KEPT = 0.4  # of the device's free memory, for vectors; rotating them needs as much again


class GpuEngine(LocalEngine):
    """Runs on this machine's GPU; arrays in memory are streamed there."""

    def __init__(self) -> None:
        try:
            from spdp.kernels import cuda
        except ImportError as error:
            raise ParameterError(f"engine='gpu': {error}") from None
        cuda.check_device()
        super().__init__("cuda")
        self._cupy = cuda.library()

    @property
    def kernels_here(self) -> str | None:
        return None

    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        if source.columns and not source.device:
            raise ParameterError(
                f"{source.name}: records with groups or labels are not streamed to a GPU; "
                "use engine='local', or an array that lies on the device"
            )
        blocks = source.blocks()
        for block in blocks if source.device else self._streamed(blocks):
            try:
                yield work(block, *args)
            except self._cupy.cuda.memory.OutOfMemoryError as error:
                raise ParameterError(
                    f"{source.name}: the GPU's memory is full ({error}); "
                    "method='oneshot' needs less, engine='local' none of it"
                ) from None

    def hold(self, source: Source, task: Task, keep_bytes: int) -> VectorStore:
        needed = None if source.n is None else 8 * source.n * len(task.region.center)
        if needed is None or needed > keep_bytes:  # asking takes longer than a small search
            pool = self._cupy.get_default_memory_pool()
            free = self._cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
            keep_bytes = max(keep_bytes, int(KEPT * free))
        return LocalStore(self, source, task, keep_bytes)

    def fingerprint(self, source: Source, key: bytes) -> str:
        return LocalEngine().fingerprint(source, key)

    def _streamed(self, blocks: Iterator[Any]) -> Iterator[Any]:
        """Blocks on the device, each uploaded while the one before is worked on."""
        with ThreadPoolExecutor(COPIERS) as copiers:
            stage = _Stage(self._cupy, copiers)
            before = None
            for batch in _batches(blocks):
                now = stage.upload(batch) if isinstance(batch, _Batch) else (batch, None)
                if before is not None:
                    yield stage.ready(*before)
                before = now
            if before is not None:
                yield stage.ready(*before)


class _Batch:
    """Consecutive blocks of one dtype, to be sent to the device together."""

    def __init__(self, first: NDArray[Any]) -> None:
        self.blocks = [first]
        self.dtype = working_dtype(first.dtype)
        self.bytes = first.size * self.dtype.itemsize

    def takes(self, block: Any) -> bool:
        size = block.size * self.dtype.itemsize if _plain(block) else STAGE_BYTES
        same = _plain(block) and working_dtype(block.dtype) == self.dtype
        return same and self.bytes + size <= STAGE_BYTES

    def add(self, block: NDArray[Any]) -> None:
        self.blocks.append(block)
        self.bytes += block.size * self.dtype.itemsize


def _plain(block: Any) -> bool:
    """Whether a block is a stack of real numbers, as files and arrays give it."""
    stack = isinstance(block, np.ndarray) and not isinstance(block, np.ma.MaskedArray)
    return stack and block.ndim == 3 and block.dtype.kind in REAL


def _batches(blocks: Iterator[Any]) -> Iterator[Any]:
    """Plain blocks in batches; others, whose records differ, one by one as they are."""
    batch: _Batch | None = None
    for block in blocks:
        if batch is not None and batch.takes(block):
            batch.add(block)
            continue
        if batch is not None:
            yield batch
        batch = _Batch(block) if _plain(block) else None
        if batch is None:
            yield block
    if batch is not None:
        yield batch


class _Stage:
    """Two page-locked buffers and their places on the device, used in turn."""

    def __init__(self, cupy: Any, copiers: ThreadPoolExecutor) -> None:
        self._cupy, self._copiers = cupy, copiers
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._slots: list[Any] = [None, None]
        self._turn = 0

    def upload(self, batch: _Batch) -> tuple[Any, Any]:
        """Start to send a batch; returns its array, and the event of its arrival."""
        pinned, device, arrived = self._slot(batch.bytes)
        m, k = sum(map(len, batch.blocks)), batch.blocks[0].shape[1]
        staged = np.frombuffer(pinned, batch.dtype, m * k * k).reshape(m, k, k)
        arrived.synchronize()  # what was in the buffer before has left it
        self._fill(staged, batch.blocks)
        stack = device[: batch.bytes].view(batch.dtype).reshape(m, k, k)
        self._stream.wait_event(self._cupy.cuda.get_current_stream().record())
        stack.set(staged, stream=self._stream)
        arrived.record(self._stream)
        return stack, arrived

    def ready(self, stack: Any, arrived: Any) -> Any:
        """A block that may be worked on."""
        if arrived is not None:
            self._cupy.cuda.get_current_stream().wait_event(arrived)
        return stack

    def _slot(self, size: int) -> tuple[Any, Any, Any]:
        self._turn = 1 - self._turn
        slot = self._slots[self._turn]
        if slot is None or slot[1].size < size:
            size = max(size, STAGE_BYTES)
            cuda = self._cupy.cuda
            event = cuda.Event(disable_timing=True)
            slot = cuda.alloc_pinned_memory(size), self._cupy.empty(size, np.uint8), event
            self._slots[self._turn] = slot
        pinned, device, arrived = slot
        return pinned, device, arrived

    def _fill(self, staged: NDArray[Any], blocks: list[NDArray[Any]]) -> None:
        jobs, start = [], 0
        for block in blocks:
            step = max(1, -(-len(block) // COPIERS))
            for i in range(0, len(block), step):
                part = block[i : i + step]
                jobs.append((staged[start : start + len(part)], part))
                start += len(part)
        list(self._copiers.map(_copy, jobs))


def _copy(job: tuple[NDArray[Any], NDArray[Any]]) -> None:
    with np.errstate(all="ignore"):
        np.copyto(job[0], job[1], casting="unsafe")
