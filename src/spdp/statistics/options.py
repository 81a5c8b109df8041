"""Options of every statistic, and functions whose help names all that they take."""

import inspect
from collections.abc import Callable
from dataclasses import field
from functools import wraps
from typing import Any, TypedDict, TypeVar

from spdp.domain.base import Domain, check_domain
from spdp.engines import Engine
from spdp.ledger import Ledger
from spdp.privacy.account import Seed
from spdp.release import Release

F = TypeVar("F", bound=Callable[..., Release])


class Options(TypedDict, total=False):
    """Options of every statistic; :func:`public` tells of them in its function's help.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee. ``delta=0`` means pure differential privacy; statistics that have
        Gaussian noise only refuse it.
    domain : Ball, EigenvalueBounds, TraceBounds or CorrelationBounds
        Public set that every record is clipped to. It must not be computed from the
        data.
    metric : str
        One of ``spdp.charts.CHARTS``. Distances of two metrics cannot be
        compared.
    reference_point : array (k, k), optional
        A public SPD matrix C: records are whitened, C^-½·X·C^-½, and the result is
        mapped back (:mod:`spdp.charts.whitened`). The domain is about whitened records.
    adjacency : "replace-one" or "add-remove"
        Neighbouring datasets: replace one record (n is public), or add or remove one
        (n is protected, too).
    groups : array, list or Dask array (n,), optional
        Subject ID of each record, a number or text. A person then counts once, as the
        mean of their clipped records, and all of them are protected together, however
        many they are.
    on_invalid : "raise" or "center"
        How to handle invalid records: stop with an error that names one (for the
        curator's eyes), or replace them with the domain's centre, so that no
        data-dependent error escapes. Arrays of a wrong shape always raise. When a call
        fails, nothing has been released.
    ledger : Ledger, optional
        Account of the dataset's budget: the cost is committed to it before any noise is
        drawn, or the release is refused.
    label : str, optional
        Name of the release in the ledger.
    random_state : None, int or Generator
        None: operating-system entropy, a private result. A seed means simulation: the
        certificate says ``private: false``.
    anyway : bool
        Release even if public numbers say that the result is no better than the
        domain's centre, which needs no data. Such a release is refused otherwise,
        before any budget is spent (:class:`spdp.errors.Uninformative`).
    engine : Engine, "local" or "gpu", optional
        Where to compute. By default where the data are: on this machine, on the cluster
        of a Dask array, or on the GPU of a CuPy array or torch tensor.
    """

    epsilon: float
    delta: float
    domain: Domain
    metric: str
    reference_point: Any
    adjacency: str
    groups: Any
    on_invalid: str
    ledger: Ledger | None
    label: str | None
    random_state: Seed
    anyway: bool
    engine: Engine | str | None


DEFAULTS: dict[str, Any] = {
    "metric": "logeuclid",
    "reference_point": None,
    "adjacency": "replace-one",
    "groups": None,
    "on_invalid": "raise",
    "ledger": None,
    "label": None,
    "random_state": None,
    "anyway": False,
    "engine": None,
}


def public(function: F) -> F:
    """A statistic's function whose signature and help name every option it takes.

    In its docstring, ``{options}`` stands for the options of every statistic.
    """
    signature = inspect.signature(function)
    mine = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    kind, required = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    shared = [
        inspect.Parameter(name, kind, default=DEFAULTS.get(name, required), annotation=annotation)
        for name, annotation in Options.__annotations__.items()
    ]
    budget = [p for p in shared if p.default is required]
    choices = [p for p in shared if p.default is not required]
    first = [p for p in mine if p.kind is not kind]
    rest = [p for p in mine if p.kind is kind]
    whole = signature.replace(parameters=[*first, *budget, *rest, *choices])
    known = set(whole.parameters)
    needed = {p.name for p in [*shared, *rest] if p.default is required}

    @wraps(function)
    def call(*args: Any, **options: Any) -> Release:
        if not needed <= options.keys() <= known:
            if needed - options.keys() == {"domain"} and options.keys() <= known:
                check_domain(None)  # says what a domain is
            try:
                whole.bind(*args, **options)
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
        return function(*args, **options)

    told = inspect.cleandoc(Options.__doc__ or "").partition("----------\n")[2]
    call.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("{options}", told)
    call.__signature__ = whole  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def option(help_: str, example: Any, default: Any = None, **options: Any) -> Any:
    """A statistic's own option, with its help and an example for the command line.

    ``options`` are for the command line, too: ``flag``, ``metavar``, ``min``,
    ``required``, ``kind`` (a type), ``parse`` (from text).
    """
    return field(default=default, metadata={"help": help_, "example": example, **options})
