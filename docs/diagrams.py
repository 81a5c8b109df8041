"""Draw the diagrams of the pages, for light and dark themes: `python docs/diagrams.py`.

They are wide letters in narrow pictures, so that they can be read on a phone.
"""

from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

STATIC = Path(__file__).parent / "_static"
THEMES = {  # of the page, words, lesser words, boxes, records, one person, the release
    "light": ("#ffffff", "#1f2328", "#57606a", "#f1f3f5", "#8b949e", "#b45309", "#0b5394"),
    "dark": ("none", "#e6edf3", "#a9b4c0", "#24292f", "#8b949e", "#f6b26b", "#8ec5ff"),
}
SANS = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Drawing:
    """SVG, element by element, in the colours of a theme."""

    def __init__(self, theme, width, height):
        self.size = (width, height)
        page, self.ink, self.soft, self.box, self.grey, self.one, self.blue = THEMES[theme]
        self.parts = []
        self.add("rect", width=width, height=height, rx=8, fill=page)

    def add(self, tag, text=None, /, **values):
        given = " ".join(f'{name.replace("_", "-")}="{v}"' for name, v in values.items())
        end = "/>" if text is None else f">{escape(text)}</{tag}>"
        self.parts.append(f"<{tag} {given}{end}")

    def text(self, x, y, words, size=20, *, fill=None, anchor="middle", bold=False, font=SANS):
        weight = 600 if bold else 400
        self.add(
            "text", words, x=x, y=y, fill=fill or self.ink, font_size=size, font_family=font,
            text_anchor=anchor, font_weight=weight,
        )  # fmt: skip

    def dot(self, x, y, fill=None, r=4.5):
        self.add("circle", cx=round(x, 1), cy=round(y, 1), r=r, fill=fill or self.grey)

    def ring(self, x, y, r, stroke, dash="none", width=2.5):
        self.add(
            "circle", cx=round(x, 1), cy=round(y, 1), r=round(r, 1), fill="none", stroke=stroke,
            stroke_width=width, stroke_dasharray=dash,
        )  # fmt: skip

    def arrow(self, x, y, to_x, to_y, stroke=None):
        stroke = stroke or self.soft
        way = np.array([to_x - x, to_y - y]) / np.hypot(to_x - x, to_y - y)
        aside = np.array([-way[1], way[0]])
        tip = np.array([to_x, to_y])
        left, right = tip - 10 * way + 5 * aside, tip - 10 * way - 5 * aside
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in (tip, left, right))
        end = tip - 8 * way
        self.add(
            "line", x1=round(x, 1), y1=round(y, 1), x2=round(end[0], 1), y2=round(end[1], 1),
            stroke=stroke, stroke_width=2.5,
        )  # fmt: skip
        self.add("polygon", points=path, fill=stroke)

    def save(self, name, theme):
        width, height = self.size
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        file = STATIC / f"{name}-{theme}.svg"
        file.write_text("\n".join([head, *self.parts, "</svg>", ""]), "utf-8")


def caption(draw, x, y, title, lines):
    draw.text(x, y, title, 23, bold=True)
    for i, line in enumerate(lines):
        draw.text(x, y + 27 * (i + 1), line, 19, fill=draw.soft)


def flow(theme):
    """From records to a release."""
    draw = Drawing(theme, 600, 480)
    rng = np.random.default_rng(3)
    cloud = rng.normal(0, 17, (22, 2))
    far = np.array([74.0, -52.0])
    left, right, top, low = 150, 440, 90, 330
    # 1: records
    for x, y in cloud + np.array([left, top]):
        draw.dot(x, y)
    draw.dot(*(far + np.array([left, top])), draw.one, 6)
    caption(draw, left, top + 88, "1  Records", ["one matrix per person"])
    draw.arrow(left + 105, top, right - 105, top)
    # 2: domain
    draw.ring(right, top, 66, draw.blue)
    for x, y in cloud + np.array([right, top]):
        draw.dot(x, y)
    edge = far / np.linalg.norm(far) * 66
    draw.dot(*(far + np.array([right, top])), draw.box, 6)
    draw.ring(*(far + np.array([right, top])), 6, draw.one, "2 2", 1.5)
    draw.dot(*(edge + np.array([right, top])), draw.one, 6)
    caption(draw, right, top + 88, "2  Domain", ["each clipped to a public set"])
    draw.arrow(right - 110, top + 135, left + 95, low - 50)
    # 3: noise
    for r, opacity in ((62, 0.10), (46, 0.14), (30, 0.2), (15, 0.3)):
        draw.add("circle", cx=left, cy=low, r=r, fill=draw.blue, opacity=opacity)
    for a, b in ((-8, -8), (-8, 8)):
        draw.add(
            "line", x1=left + a, y1=low + b, x2=left - a, y2=low - b, stroke=draw.ink,
            stroke_width=3,
        )  # fmt: skip
    caption(draw, left, low + 92, "3  Noise", ["on the sum, enough to", "hide any one person"])
    draw.arrow(left + 95, low, right - 105, low)
    # 4: release
    draw.ring(right, low, 62, draw.blue, "7 6", 2)
    draw.dot(right, low, draw.blue, 8)
    draw.text(right, low - 20, "released", 19, fill=draw.blue)
    draw.text(right, low + 36, "its bound", 19, fill=draw.soft)
    caption(draw, right, low + 92, "4  Release", ["a matrix, a bound,", "and a certificate"])
    draw.save("flow", theme)


def persons(theme):
    """What one record, and what one person, is."""
    draw = Drawing(theme, 640, 400)
    rng = np.random.default_rng(1)
    centres = {"Ann": (-72, 10), "Bob": (70, -48), "Cem": (62, 62)}
    clouds = {name: rng.normal(0, 16, (9, 2)) + place for name, place in centres.items()}
    for x, title, lines in (
        (160, "Records", ["one of Ann’s nine is hidden,", "eight still speak of her"]),
        (
            480,
            "Persons: groups=",
            ["Ann counts once, as her mean;", "all nine are hidden together"],
        ),
    ):
        whole = x == 480
        for name, cloud in clouds.items():
            mine = draw.one if name == "Ann" else draw.grey
            for point in cloud + np.array([x, 140]):
                draw.dot(*point, mine, 4 if whole else 5)
            if whole:
                draw.dot(*(cloud.mean(axis=0) + np.array([x, 140])), draw.blue, 9)
            a, b = centres[name]
            draw.text(x + a, 140 + b - 54, name, 20)
        if whole:
            draw.ring(*(clouds["Ann"].mean(axis=0) + np.array([x, 140])), 48, draw.one, "7 6")
        else:
            draw.ring(
                *(clouds["Ann"][np.argmax(clouds["Ann"][:, 1])] + np.array([x, 140])),
                12,
                draw.one,
                "4 3",
            )
        caption(draw, x, 300, title, lines)
    draw.add("line", x1=320, y1=30, x2=320, y2=370, stroke=draw.soft, stroke_width=1)
    draw.save("persons", theme)


KINDS = [
    ("correlations, connectomes: shrunk by a public η", "CorrelationBounds(eta)"),
    ("diffusion tensors, in a stated unit", 'tensor_bounds("mm2/s")'),
    ("covariances of EEG, EMG, MEG: floor and amplitudes", "amplitude_bounds(k, low, high, …)"),
    ("covariance descriptors of images", "descriptor_bounds(channels)"),
    ("a known trace T, a floor added", "TraceBounds(floor, T)"),
    ("eigenvalues with known limits", "EigenvalueBounds(low, high)"),
    ("near a known matrix M", "Ball(r, M)"),
]


def domains(theme):
    """Which domain: a question, and what follows from each answer."""
    draw = Drawing(theme, 580, 240 + 74 * len(KINDS))
    question(draw, 15, 15, 550, "Are there public data of the same kind?")
    draw.arrow(60, 63, 60, 95)
    draw.text(75, 88, "yes", 18, fill=draw.soft, anchor="start")
    draw.text(30, 122, "a wide domain from below, and", 19, anchor="start")
    draw.text(
        30, 148, "reference=Reference.from_public(…)", 18, fill=draw.blue, anchor="start", font=MONO
    )
    draw.arrow(480, 63, 480, 172)
    draw.text(495, 100, "no, or", 18, fill=draw.soft, anchor="start")
    draw.text(495, 122, "as well", 18, fill=draw.soft, anchor="start")
    question(draw, 15, 175, 550, "What are the matrices?")
    top = 223
    draw.add(
        "line", x1=38, y1=top, x2=38, y2=top + 74 * len(KINDS) - 38, stroke=draw.soft,
        stroke_width=2.5,
    )  # fmt: skip
    for i, (kind, domain) in enumerate(KINDS):
        y = top + 36 + 74 * i
        draw.arrow(38, y, 66, y)
        draw.text(76, y - 2, kind, 19, anchor="start")
        draw.text(76, y + 24, domain, 18, fill=draw.blue, anchor="start", font=MONO)
    draw.save("domains", theme)


def question(draw, x, y, width, words):
    draw.add("rect", x=x, y=y, width=width, height=46, rx=23, fill=draw.box, stroke=draw.blue)
    draw.text(x + width / 2, y + 30, words, 20, bold=True)


def scale(theme):
    """Blocks, exact integers, one sum, one noise."""
    draw = Drawing(theme, 680, 430)
    for i in range(4):
        x = 92 + 165 * i
        for row in range(3):
            for column in range(4):
                draw.dot(x - 36 + 24 * column, 48 + 22 * row, r=6)
        draw.arrow(x, 108, x, 150)
        draw.add("rect", x=x - 68, y=153, width=136, height=66, rx=8, fill=draw.box)
        draw.text(x, 181, "exact", 19)
        draw.text(x, 206, "integers", 19)
        draw.arrow(x, 222, 340 + 60 * (i - 1.5), 278)
    draw.text(340, 25, "blocks: of a file, an array, a cluster, a GPU", 19, fill=draw.soft)
    question(draw, 215, 282, 250, "one exact sum")
    draw.arrow(340, 330, 340, 368)
    draw.text(356, 356, "noise, once", 19, fill=draw.blue, anchor="start")
    draw.text(340, 400, "release", 23, bold=True)
    draw.save("scale", theme)


def main():
    for theme in THEMES:
        for diagram in (flow, persons, domains, scale):
            diagram(theme)


if __name__ == "__main__":
    main()
