"""The hazards that NIST SP 800-226 names, answered for one release.

"Guidelines for Evaluating Differential Privacy Guarantees" (NIST Special Publication
800-226, 2025) asks of every claim of differential privacy what stands under it: its
parameters and unit, the algorithm, trust, the implementation, and how the data were
collected and kept.

*Enforced.* Every answer is made of the certificate's fields, or holds for every release
of spdp with these fields. *Assumed.* The certificate was verified: run ``spdp verify``.
*Therefore* what only people can know is not answered here: it is marked, and left to
the curator.
"""

from typing import NamedTuple

from spdp.options import counted
from spdp.release.certificate import Certificate
from spdp.release.summary import LIMITS, Summary
from spdp.release.verify import NOT_PROVEN

SOURCE = "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees (2025)"
CURATOR = "To be answered by the curator: "


class Hazard(NamedTuple):
    """A hazard, what this release does about it, and if people must add to that."""

    name: str
    answer: str
    open: bool = False


def hazards(told: Summary) -> list[Hazard]:
    """All of them, from the guarantee down to the collection of the data."""
    c = told.c
    return [
        Hazard("Privacy parameters", parameters(told)),
        Hazard("Variant of differential privacy", variant(c)),
        Hazard("Unit of privacy", unit(c)),
        Hazard("Neighbouring datasets", neighbours(c)),
        Hazard("Sensitivity and clipping", sensitivity(c)),
        Hazard("Composition within the release", composition(c)),
        Hazard("Composition with other releases", other_releases(), open=True),
        Hazard("Quantities without protection", unprotected(c)),
        Hazard("Choices made by looking at the data", choices(c), open=True),
        Hazard("Post-processing", post_processing(c)),
        Hazard("Accuracy", told.accuracy),
        Hazard("Bias", bias(told), open=True),
        Hazard("Trust model", trust(c)),
        Hazard("Floating-point numbers", floating_point(c)),
        Hazard("Random numbers", randomness(c)),
        Hazard("Side channels", side_channels(c)),
        Hazard("Errors in the implementation", verification()),
        Hazard("Security of the records", _security(), open=True),
        Hazard("Collection of the data", _collection(), open=True),
    ]


def parameters(told: Summary) -> str:
    """ε, δ and μ, and whether they are weak."""
    c = told.c
    text = f"ε = {c.epsilon:g}, δ = {c.delta:g}."
    if c.mu is not None:
        text = f"ε = {c.epsilon:g}, δ = {c.delta:g}, from μ = {c.mu:.6g}."
    if told.cautions:
        return f"{text} Caution: {' '.join(told.cautions)}"
    if c.delta and (c.n is None or not c.public):
        return f"{text} Whether δ is below 1/n cannot be told: n is not public."
    return f"{text} ε is not above 10, and δ not above 1/n."


def variant(c: Certificate) -> str:
    """Pure or approximate differential privacy, and what it comes from."""
    if c.mu is None:
        return "Pure differential privacy: δ = 0, and the bound holds for every outcome."
    return (
        "Approximate differential privacy. Behind it is Gaussian differential privacy, of which "
        "δ is computed for this ε."
    )


def unit(c: Certificate) -> str:
    """Whose data are protected."""
    if c.unit is None:
        return "Not known: a summary was stated, with its sensitivity. Nobody checked whose it is."
    if c.unit == "person":
        return (
            "A person with all their records. Assumed: the ids that were given are right, and no "
            "person has two."
        )
    more = ", and a larger δ" if c.delta else ""
    owner = LIMITS.get(c.unit, f"A person with m records is protected with m·ε only{more}.")
    return f"One {c.unit}. {owner}"


def neighbours(c: Certificate) -> str:
    """What is hidden: a replacement, or presence."""
    if c.unit is None:
        return f"Any two datasets whose summaries are at most {c.sensitivity:g} apart, as stated."
    if c.public:
        return (
            f"Datasets of the same size that differ in one {c.unit}, replaced by any other. The "
            f"number of {counted(c.unit)} is public."
        )
    return (
        f"Datasets of which one has one {c.unit} more. The number of {counted(c.unit)} is "
        "protected, too."
    )


def sensitivity(c: Certificate) -> str:
    """How far one record moves an answer, and why."""
    if c.unit is None:
        return (
            f"{c.sensitivity:g} ({c.distance} distance), stated by whoever made the release. It "
            "was not checked."
        )
    return (
        f"Each {c.unit} is clipped to a public domain, then made an integer vector whose norm is "
        "checked in integers; the sensitivity of every answer follows from that. In the last one "
        f"it is {c.sensitivity:.4g} ({c.distance} distance). Assumed: the domain was chosen "
        "without looking at the records."
    )


def composition(c: Certificate) -> str:
    """How the answers of one release add up."""
    answers = len(c.steps)
    if answers == 1:
        return "One noisy answer: nothing is composed."
    if c.mu is None:
        return f"{answers} noisy answers. Their εᵢ add up to at most ε, in exact arithmetic."
    return (
        f"{answers} noisy answers. Each question may depend on earlier ones. Their μᵢ² "
        "add up to at most the budget's μ² (adaptive composition of Gaussian differential "
        "privacy), in exact fractions."
    )


def other_releases() -> str:
    """What a certificate cannot know."""
    return (
        "The certificate is of one release. All others of the same records compose with it. A "
        f"ledger (spdp ledger) counts those that are paid from it. {CURATOR}which others there are."
    )


def unprotected(c: Certificate) -> str:
    """What is stated in the clear."""
    if c.unit is None:
        return "The size of the matrix and the stated sensitivity are public."
    size = f", the number of {counted(c.unit)} (n = {c.n})" if c.public and c.n else ""
    return (
        f"Taken as public, and stated in the clear: the size of the matrices, the domain, the "
        f"options of the statistic (such as names of classes){size}. No number computed from the "
        "records is released without noise."
    )


def choices(c: Certificate) -> str:
    """Bounds, hyperparameters and methods."""
    return (
        "What a search chooses is chosen from noisy answers, which are counted, and from public "
        f"numbers. {CURATOR}how ε, the domain and the statistic were chosen, and what was done to "
        "the records before spdp read them."
    )


def post_processing(c: Certificate) -> str:
    """What is computed after the noise."""
    return (
        "All released arrays and the certificate are computed from noisy answers and public "
        "numbers, which costs nothing more. So is whatever anybody computes from them."
    )


def bias(told: Summary) -> str:
    """What is systematic in the error."""
    c = told.c
    clipped = f" In this release, {c.clipped}." if c.clipped else ""
    if c.unit is None:
        return f"What a summary was made of is not known. {CURATOR}whom the data leave out."
    return (
        f"Estimated is {c.estimand}. {c.unit.capitalize()}s outside the domain are moved to its "
        f"edge, which no error bound counts.{clipped} {CURATOR}whom the data leave out."
    )


def trust(c: Certificate) -> str:
    """Who sees what."""
    if c.trust:
        return (
            f"Distributed: {c.trust.sites} sites share the noise and mask their answers. Nobody "
            f"sees a site's sum. It holds while at most {c.trust.colluding} of them collude, and "
            f"rests on {c.trust.computational}."
        )
    if c.unit is None:
        return "Central: whoever computed the summary saw the records."
    return (
        "Central: the curator, and the machines that the curator uses, see the records. Everybody "
        "else sees the release. Sites that hand sums to a curator trust the curator, too."
    )


def floating_point(c: Certificate) -> str:
    """What stands between records and noise."""
    return (
        "Noise is an integer, drawn exactly from its law, and added to an exact sum of integers. "
        "Float64 numbers appear only before (where a record's code depends on that "
        "record alone) and after."
    )


def randomness(c: Certificate) -> str:
    """Where the noise comes from."""
    return (
        "Random bits come from the operating system; no seed was set. The sampler was "
        f"{c.versions.get('sampler', 'that of OpenDP')}. Assumed: those bits are uniform."
    )


def side_channels(c: Certificate) -> str:
    """Time and memory."""
    if c.trust:
        return (
            "Answers of sites leave at whole multiples of two seconds; time is not hidden beyond "
            "that. Memory is not hidden from who uses the same machine."
        )
    return (
        "Not protected: time and memory depend on the records and on the noise. Nobody but the "
        "curator may measure the machine. Errors and progress are for the curator's eyes."
    )


def verification() -> str:
    """What can be checked by others."""
    return (
        "spdp verify checks the seal and recomputes every number that follows from others. "
        f"{NOT_PROVEN}"
    )


def _security() -> str:
    return f"{CURATOR}who has access to the records, and how they are kept."


def _collection() -> str:
    return f"{CURATOR}what was collected, with which consent, and who may have seen it before."


def markdown(told: Summary, seal: str) -> str:
    """The table, as a page of Markdown."""
    lines = [
        f"# {told.heading}: hazards",
        "",
        f"Topics after {SOURCE}. Answers are made from the release's certificate.",
        f"Release: sha256:{seal}",
        "",
        "| hazard | this release |",
        "|---|---|",
    ]
    lines += [f"| {h.name} | {h.answer.replace('|', chr(92) + '|')} |" for h in hazards(told)]
    return "\n".join(lines) + "\n"
