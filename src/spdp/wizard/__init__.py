"""A wizard for those who do not program: a local page that leads to a release.

``recipe.py`` says what was entered, as one plain description that knows no page;
``instruments.py`` what is asked of instruments, and so the public domain;
``accuracy.py`` errors in the user's terms; ``forecast.py`` the predicted error, fast
enough for a slider; ``writing.py`` the command line, the script and the notebook of a
recipe; ``rehearsal.py`` a simulation of it; ``headers.py`` the public shape of a file;
``persons.py`` whose they are, and how many; ``guarantee.py`` the guaranteed error;
``ledger_state.py`` ledgers; ``messages.py`` messages in the page's words;
``navigation.py`` which step may be shown; ``jobs.py`` a command that runs beside the
page; ``bundle.py`` what is handed out. ``spdp start`` asks in a terminal, from the same
table of instruments.

The page itself is a thin layer over these: ``page.py`` (what is asked), ``session.py``
(what answers), ``entries.py``, ``predicting.py``, ``rehearsal_step.py`` and
``releasing.py`` (its steps), ``markup.py`` and ``refresh.py`` (work that runs),
``picture.py`` (the curves) and ``server.py`` with ``guard.py``, which lets nobody else
in. Of these, all but the picture and the guard import Shiny or Starlette (extra
``wizard``).
"""
