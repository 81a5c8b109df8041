"""Looking again at what runs beside the page."""

import asyncio

from shiny import reactive
from shiny.reactive._core import get_current_context  # exported, but not declared to be

TICK = 0.4  # seconds between two looks
WAITING: set[asyncio.Task[None]] = set()  # else nobody would hold the tasks


def look_again(seconds: float = TICK) -> None:
    """Compute what calls this again after a while; a closed page is let go in silence.

    Shiny's own ``invalidate_later`` is cancelled with the page, and prints a traceback
    where that happens while another computation holds its lock.
    """
    context = get_current_context()

    async def later() -> None:
        await asyncio.sleep(seconds)
        async with reactive.lock():
            context.invalidate()
            await reactive.flush()

    task = asyncio.get_running_loop().create_task(later())
    WAITING.add(task)
    task.add_done_callback(WAITING.discard)
