"""Which step may be shown, and which steps are done; it knows no page."""

from collections.abc import Collection, Mapping

from spdp.wizard.jobs import Job
from spdp.wizard.recipe import Recipe

ORDER = (
    *("records", "instrument", "statistic", "privacy"),
    *("rehearsal", "ledger", "release", "results"),
)
LAST = ("release", "results")


def always_open(job: Job | None) -> tuple[str, ...]:
    """Steps that no problem closes: of a release that runs, or was made."""
    if job is None or not (job.running or job.code == 0):
        return ()
    return LAST[:1] if job.running else LAST


def destination(
    wish: str, here: str, found: Mapping[str, str], opened: Collection[str]
) -> tuple[str, str | None]:
    """The step that is shown for a wish, and the one whose problem barred the way."""
    if wish in opened or ORDER.index(wish) <= ORDER.index(here):
        return wish, None
    first = next((s for s in ORDER[: ORDER.index(wish)] if s in found), None)
    return first or wish, first


def done(
    visited: Collection[str], here: str, found: Mapping[str, str], job: Job | None
) -> list[str]:
    """Steps that were seen, and hold no problem; the last two once it is released."""
    released = job is not None and job.code == 0
    kept = [s for s in ORDER if s in visited and s != here and s not in found]
    return [s for s in kept if s not in LAST or released]


def is_released(recipe: Recipe, asked: Recipe | None, job: Job | None) -> bool:
    """Whether just this recipe was released: what it spent is no problem of it."""
    return job is not None and job.code == 0 and asked == recipe


def sentence(text: str) -> str:
    """A message with a capital letter, unless it begins with a file's name."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    word = first.rstrip(",")
    return text[0].upper() + text[1:] if word.isascii() and word.isalpha() else text
