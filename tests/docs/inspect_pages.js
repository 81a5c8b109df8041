// Looks at pages of the same origin in a frame of a given width and theme, and leaves what is wrong with them, as JSON, in <pre id="faults">.
const MINIMUM = 4.5;

function colour(text) {
  const parts = text.match(/[\d.]+/g).map(Number);
  return text.startsWith("color(") ? [...parts.slice(0, 3).map((x) => 255 * x), parts[3] ?? 1] : [...parts.slice(0, 3), parts[3] ?? 1];
}

function over(top, below) {
  const a = top[3];
  return [0, 1, 2].map((i) => a * top[i] + (1 - a) * below[i]).concat(1);
}

function background(element, view) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(colour(view.getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
}

function luminance(c) {
  const [r, g, b] = c.map((x) => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

function* texts(document) {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const e = node.parentElement;
    if (node.data.trim() && e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !e.closest("script, style, svg, [aria-hidden=true]")) yield [node, e];
  }
}

// Links within sentences may be as small as their words; what stands alone must be at least this wide and high.
const TARGET = 24;

function small(document, view) {
  const found = new Map();
  for (const e of document.querySelectorAll("a[href], button, summary, label[for]")) {
    if (!e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || e.closest(".sidebar-drawer, .toc-drawer, [aria-hidden=true]")) continue;
    if (e.closest("p, li, td, th, dt, dd, h1, h2, h3, h4, figcaption, pre") && view.getComputedStyle(e).display.startsWith("inline")) continue;
    const { width, height } = e.getBoundingClientRect();
    if (width && height && Math.min(width, height) < TARGET - 0.5) found.set(`${e.tagName} ${e.className}`, `small target ${width.toFixed(0)}x${height.toFixed(0)}: ${e.tagName}.${e.className} "${e.textContent.trim().slice(0, 30)}"`);
  }
  return found.values();
}

function cut(document, view) {
  const found = [];
  for (const e of document.querySelectorAll("pre"))
    if (e.scrollWidth > e.clientWidth + 1 && !["auto", "scroll"].includes(view.getComputedStyle(e).overflowX)) found.push(`code is cut off: "${e.textContent.trim().slice(0, 30)}"`);
  return found;
}

function faults(document, view) {
  const found = [];
  const wide = document.documentElement.scrollWidth - view.innerWidth;
  if (wide > 0) found.push(`scrolls sideways by ${wide} pixels`);
  for (const image of document.images) if (!image.alt.trim()) found.push(`no alt text: ${image.src}`);
  for (const image of document.images) if (!image.naturalWidth && image.loading !== "lazy") found.push(`not shown: ${image.src}`);
  const poor = new Map();
  for (const [node, e] of texts(document)) {
    const below = background(e, view);
    const ratio = contrast(over(colour(view.getComputedStyle(e).color), below), below);
    if (ratio < MINIMUM) poor.set(`${e.tagName} ${e.className}`, `contrast ${ratio.toFixed(2)}: ${e.tagName}.${e.className} "${node.data.trim().slice(0, 30)}"`);
  }
  found.push(...small(document, view), ...cut(document, view));
  if (!document.body.dataset.theme) found.push("no theme");
  return [...found, ...poor.values()];
}

async function look(page, width, theme) {
  localStorage.setItem("theme", theme);
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 800px; border: 0`;
  frame.src = page;
  document.body.append(frame);
  await new Promise((done) => (frame.onload = done));
  const result = faults(frame.contentDocument, frame.contentWindow);
  frame.remove();
  return result;
}

async function main() {
  const { pages, looks } = JSON.parse(document.getElementById("task").textContent);
  const all = {};
  for (const page of pages)
    for (const [width, theme] of looks) {
      const found = await look(page, width, theme);
      if (found.length) all[`${page} at ${width} pixels, ${theme}`] = found;
    }
  document.getElementById("faults").textContent = JSON.stringify(all);
}

main().catch((error) => (document.getElementById("faults").textContent = JSON.stringify({ error: [String(error)] })));
