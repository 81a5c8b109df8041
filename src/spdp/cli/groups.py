"""Options that belong together, as dataclasses: commands take one as a parameter."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spdp import choices
from spdp.cli import options
from spdp.cli.output import Output
from spdp.cli.records import name_of
from spdp.cli.spelling import printable
from spdp.errors import ParameterError

if TYPE_CHECKING:
    from spdp.domain import Domain
    from spdp.privacy.ledger import Ledger

__all__ = ["Bounds", "Budget", "Publication", "Rules", "Space"]


@dataclass(frozen=True)
class Budget:
    """What a release may cost."""

    epsilon: options.Epsilon
    delta: options.Delta


@dataclass(frozen=True)
class Bounds:
    """The public set that every record is forced into: exactly one is to be given."""

    eigenvalues: options.Eigenvalues = None
    trace: options.Trace = None
    correlation: options.Correlation = None
    radius: options.Radius = None

    def domain(self, center: Path | None = None) -> "Domain":
        """The set that the options describe; a ball is around the matrix of a file."""
        from spdp.domain import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds

        given = [f"--{name}" for name, bound in asdict(self).items() if bound is not None]
        if len(given) != 1:
            both = f"got {' and '.join(given)}; " if given else ""
            raise ParameterError(
                f"{both}pass one of --eigenvalues LOW HIGH, --trace LOW TRACE, --correlation "
                "SHRINKAGE and --radius R: the public set that every record is forced into. It "
                "must come from public knowledge; bounds computed from the data would leak them."
            )
        if center is not None and self.radius is None:
            raise ParameterError("--center goes with --radius")
        if self.eigenvalues is not None:
            return EigenvalueBounds(*self.eigenvalues)
        if self.trace is not None:
            return TraceBounds(*self.trace)
        if self.correlation is not None:
            return CorrelationBounds(self.correlation)
        assert self.radius is not None
        return Ball(self.radius, options.load_matrix(center))


@dataclass(frozen=True)
class Space:
    """Where records lie, and how far apart."""

    bounds: Bounds
    center: options.Center = None
    metric: options.Metric = "logeuclid"

    def domain(self) -> "Domain":
        """The public set that every record is forced into."""
        return self.bounds.domain(self.center)


@dataclass(frozen=True)
class Publication:
    """Where a release goes, who pays, and what it is called there."""

    output: Output
    ledger: options.LedgerFile = None
    label: options.Label = None

    def account(self) -> "Ledger | None":
        """The ledger that pays, if one is named."""
        return None if self.ledger is None else options.open_ledger(self.ledger)

    def name(self, files: Sequence[Path]) -> str:
        """What the ledger's entry for a release of these files is called."""
        return printable(name_of(files) if self.label is None else self.label)


@dataclass(frozen=True)
class Rules:
    """Which datasets are neighbours, and what an unusable record does."""

    adjacency: options.Adjacency = choices.Adjacency.REPLACE_ONE
    on_invalid: options.OnInvalid = choices.OnInvalid.RAISE
