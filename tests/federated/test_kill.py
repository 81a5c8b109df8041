"""A site that is killed at any line answers once, and has paid once."""

import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from consortium import SIGNATURE, Asking, Consortium

import spdp
from spdp.federated import joining
from spdp.federated.canonical import digest_of
from spdp.federated.site import Site
from spdp.ledger.studies import Studies

FORK = multiprocessing.get_context("fork")
HOME = Path(spdp.__file__).parent
# Where records are touched, noise is drawn, and journal and keys are written.
FILES = {
    str(HOME / file)
    for file in (
        "federated/site.py",
        "federated/masks.py",
        "ledger/studies.py",
        "ledger/file.py",
        "ledger/sqlite_journal.py",
        "privacy/account.py",
    )
}


def counted(stop):
    """Counts lines from the first touch of a record until the answer is sent.

    The process is killed at one of them.
    """
    seen, touched = [0], [False]

    def trace(frame, event, _):
        touched[0] = touched[0] or frame.f_code.co_name == "_sent"
        if frame.f_code.co_filename not in FILES | {__file__}:
            return None
        if event == "line" and touched[0]:
            seen[0] += 1
            if seen[0] == stop:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace, seen


def answer(consortium, message, out, stop):
    """In a process of its own: answer, send, and tell how many lines that took."""
    member = consortium.members[0]
    data = joining.opened(member.X, consortium.terms, member.ledger)  # reading takes no part
    trace, seen = counted(stop)
    sys.settrace(trace)
    keys = member.keys(consortium.terms)
    parts = consortium.study, consortium.seals, member.who, keys, member.ledger, data
    with Site(*parts) as site:
        sent = site.reply(message)
        (out / "draft").write_bytes(sent)
        os.replace(out / "draft", out / "sent")
    sys.settrace(None)
    (out / "lines").write_text(str(seen[0]))


def started(*args):
    process = FORK.Process(target=answer, args=args)
    process.start()
    process.join(120)
    return process.exitcode


class Bench:
    """A site before a round, as often as it is needed."""

    def __init__(self, folder, earlier):
        self.c = Consortium(folder / "study", n=12, method="adaptive")
        self.asking, self.folder = Asking(self.c), folder
        self.member = self.c.members[0]
        with self.c.site(self.member) as site:
            for _ in range(earlier):
                said = self.asking.description(mu=0.1 * self.c.terms.mu)
                own = site.answer(self.asking.message(said))
                self.asking.history.append((said, [own] * 3))
        self.message = self.asking.message(self.asking.description(mu=0.1 * self.c.terms.mu))
        shutil.copytree(self.member.folder, folder / "before")

    def lines(self):
        """Number of lines of one answer."""
        assert started(*self.fresh("count"), 0) == 0
        return int((self.folder / "count" / "lines").read_text())

    def fresh(self, name):
        out = self.folder / name
        out.mkdir()
        for file in (self.folder / "before").iterdir():
            shutil.copy(file, self.member.folder / file.name)
        for file in self.member.folder.iterdir():  # of an earlier kill
            if not (self.folder / "before" / file.name).exists():
                file.unlink()
        return self.c, self.message, out

    def kill_at(self, line):
        """Kill, start again, kill again at the same line, and start for good."""
        c, message, out = self.fresh(f"at {line}")
        first = started(c, message, out, line)
        assert first == -signal.SIGKILL, f"line {line} was not reached"
        early = (out / "sent").read_bytes() if (out / "sent").exists() else None
        second = started(c, message, out, line)
        assert second in (0, -signal.SIGKILL)
        between = (out / "sent").read_bytes() if (out / "sent").exists() else None
        assert started(c, message, out, 0) == 0
        sent = (out / "sent").read_bytes()
        assert early in (None, sent), f"two answers after a kill at line {line}"
        assert between in (None, sent), f"two answers after a kill at line {line}"
        rounds = Studies(self.member.ledger).answers(c.sealed.hex())
        assert len(rounds) == len(self.asking.history) + 1
        assert rounds[-1].answer == sent
        assert len({digest_of(row.answer[SIGNATURE:]) for row in rounds}) == len(rounds)
        assert self.member.ledger.spent()["entries"] == 1, f"paid twice, line {line}"
        assert self.member.ledger.spent()["mu"] == c.terms.mu
        assert self.member.keys(c.terms).read().round == len(rounds)
        shutil.rmtree(out)


def kills(folder, number=None):
    """Kills at lines of a first and of a later answer: some of them, or all."""
    done = 0
    for earlier in (0, 2):
        (folder / str(earlier)).mkdir()
        bench = Bench(folder / str(earlier), earlier)
        lines = bench.lines()
        for line in range(1, lines + 1, 1 if number is None else lines // number):
            bench.kill_at(line)
            done += 1
    return done


def test_killed_at_some_lines(tmp_path):
    assert kills(tmp_path, 5) >= 10


@pytest.mark.audit
def test_killed_at_each_line(tmp_path):
    done = kills(tmp_path)
    print(f"a site: killed {done} times, at each line, never two answers, never paid twice")
    assert done >= 200


def test_these_tests_find_an_answer_sent_before_it_is_written_down(tmp_path, monkeypatch):
    """The order that this guards, broken: sent first, then journaled."""
    from spdp.federated import site as sites

    bench = Bench(tmp_path, 0)
    honest = sites.Site._sent

    def early(self, description, asked, keys):
        journal = self.studies.journal

        def leaky(study, row):
            (bench.folder / "leak" / "sent").write_bytes(row.answer)
            os.kill(os.getpid(), signal.SIGKILL)
            return journal(study, row)

        self.studies.journal = leaky
        return honest(self, description, asked, keys)

    c, message, out = bench.fresh("leak")
    monkeypatch.setattr(sites.Site, "_sent", early)
    assert started(c, message, out, 0) == -signal.SIGKILL
    early_bytes = (out / "sent").read_bytes()
    monkeypatch.undo()
    assert started(c, message, out, 0) == 0
    assert (out / "sent").read_bytes() != early_bytes
