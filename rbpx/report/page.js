"use strict";
// Figures are drawn when they come near, the others while nothing else is to do, so that all are there for paper. Their
// colours are those of the style sheet, so that a change of theme needs no drawing.
const root = document.documentElement;
const config = JSON.parse(document.getElementById("config").textContent);
const charts = unpacked("charts").then((text) => JSON.parse(text || "{}")); // of all figures by their names
const vega = unpacked("vega").then((text) => {
  document.head.append(Object.assign(document.createElement("script"), { textContent: text }));
});
const drawn = new Map(); // plot -> the width that it was drawn for
const FOLDED = 460; // pixels, of a figure that nobody sees yet

async function unpacked(id) { // a compressed text
  const text = document.getElementById(id).textContent;
  if (!text) return "";
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}
function remembered() {
  try { return localStorage.getItem("rbpx-theme"); } catch { return null; } // a page from disk may have no storage
}
function setTheme(theme, keep) {
  root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(theme === "dark"));
  if (keep) { try { localStorage.setItem("rbpx-theme", theme); } catch { /* then it is not remembered */ } }
}

async function draw(plot) { // one that cannot be drawn says so, and is nothing to the others
  const width = Math.floor(plot.clientWidth) || FOLDED;
  if (drawn.get(plot) === width) return;
  drawn.set(plot, width);
  try {
    await embed(plot, width);
  } catch (problem) {
    console.error(`${plot.dataset.of}: ${problem}`);
    plot.textContent = "This figure could not be drawn; its values stand in a table.";
  }
}
async function embed(plot, width) {
  const spec = structuredClone((await charts)[plot.dataset.of]);
  await vega;
  spec.width = width;
  spec.autosize = { type: "fit-x", contains: "padding" };
  fitLegends(spec, width);
  await vegaEmbed(plot, spec, {
    actions: false, renderer: "svg", mode: "vega-lite", config,
    tooltip: (handler, event, item, value) => tip(event, value),
  });
  for (const text of plot.querySelectorAll("text")) text.innerHTML = text.innerHTML.replace(/RBP_(\d+|k\b)/g, 'RBP<tspan dy=".2em" font-size=".75em">$1</tspan><tspan dy="-.15em">\u200b</tspan>');
  plot.querySelector("svg").setAttribute("aria-hidden", "true"); // the plot has a name, its values stand in a table
}

function fitLegends(spec, width) { // as many columns as there is room for
  for (const { encoding } of spec.layer) {
    for (const channel of Object.values(encoding ?? {})) {
      const names = channel?.scale?.domain;
      if (!Array.isArray(names) || channel.legend === null) continue;
      const longest = Math.max(...names.map((name) => name.length)) * 6.8 + 32; // pixels, with symbol and distance
      const labelLimit = width - 40; // a name longer than the figure is cut, and whole in its table
      channel.legend = { ...channel.legend, labelLimit, columns: Math.max(1, Math.min(names.length, Math.floor((width - 80) / longest))) };
    }
  }
}

function spoken(text) { // 1.5e+9 as 1.5B, as on the axes
  const value = /e\+\d+$/.test(text) ? Number(text) : 0;
  const unit = [[1e12, "T"], [1e9, "B"], [1e6, "M"]].find(([of]) => value >= of && value < 1e15);
  return unit ? `${Number((value / unit[0]).toPrecision(3))}${unit[1]}` : text;
}

function tip(event, value) {
  const box = document.getElementById("tip");
  if (value === null || value === undefined || value === "") { box.style.visibility = "hidden"; return; }
  const rows = Object.entries(value).filter(([, text]) => !["", "null", "NaN", "undefined"].includes(String(text)));
  const table = document.createElement("table");
  for (const [name, text] of rows) {
    const row = table.insertRow();
    row.insertCell().textContent = name;
    row.insertCell().textContent = spoken(String(text));
  }
  box.replaceChildren(table);
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6))}px`;
  box.style.top = `${event.clientY + 14 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 14}px`;
  box.style.visibility = "visible";
}

// ------------------------------------------------------------------------------------------------------- tables

const rawOf = (cell) => {
  const text = cell.textContent.trim();
  return cell.dataset.v ?? (text === "–" ? "" : cell.className ? text : text.replaceAll(",", ""));
};
function sortBy(head) {
  const table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = (row) => rawOf(row.cells[at]).split("|")[0];
  const rows = [...body.rows].sort((a, b) => {
    const x = key(a), y = key(b);
    if (x === "" || y === "") return (x === "") - (y === ""); // what is unknown comes last, either way
    const order = isNaN(x) || isNaN(y) ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return down ? -order : order;
  });
  body.append(...rows);
}
function csvOf(table) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const heads = [...table.tHead.rows[0].cells].map((head) => head.dataset.n.split("|"));
  const lines = [heads.flat()];
  for (const row of table.tBodies[0].rows) {
    lines.push([...row.cells].flatMap((cell, at) => valuesOf(cell, heads[at].length)));
  }
  return lines.map((line) => line.map(quoted).join(",")).join("\n") + "\n";
}
function valuesOf(cell, n) {
  const values = n > 1 ? rawOf(cell).split("|") : [rawOf(cell)];
  return [...values, ...Array(n - values.length).fill("")];
}
function download(button) {
  const table = button.closest(".sheet").querySelector("table");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
  link.download = button.dataset.file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const placed = new Map(); // place of a table -> the width that it was fitted to
const fitting = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.offsetWidth === placed.get(target)) continue;
    placed.set(target, target.offsetWidth);
    fit(target);
  }
});
function fit(place) {
  place.classList.remove("stacked");
  if (place.scrollWidth > place.clientWidth) stack(place);
}
function reveal(button) { // the columns that a terminal has no room for
  const sheet = button.closest(".sheet");
  for (const each of sheet.querySelectorAll("[hidden]")) each.hidden = false;
  button.remove();
  fit(sheet.querySelector(".scroll"));
}
function stack(place) { // each row by itself, each value under its heading, so that nothing is out of sight
  const table = place.querySelector("table"), told = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  const heads = told.map((head, n) => head === "95 %" ? `95 % of ${told[n - 1]}` : head);
  for (const row of table.tBodies[0].rows) for (const cell of row.cells) cell.dataset.h = heads[cell.cellIndex];
  place.classList.add("stacked");
}

// ------------------------------------------------------------------------------------------------------- the page

const plots = [...document.querySelectorAll(".plot")];
setTheme(remembered() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"), false);
document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark", true));
document.addEventListener("click", (event) => {
  const head = event.target.closest("th"), csv = event.target.closest("button[data-file]"), all = event.target.closest("button.all"), link = event.target.closest('a[href^="#"]');
  if (head) sortBy(head);
  if (csv) download(csv);
  if (all) reveal(all);
  if (link) unfold(link.hash);
});
function unfold(hash) { // what a link leads to may be folded away
  const target = hash.length > 1 && document.getElementById(decodeURIComponent(hash.slice(1)));
  for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}
if (matchMedia("(max-width: 40rem)").matches) // rows are blocks there, and many of them are many screens
  for (const each of document.querySelectorAll(".analysis .sheet[open]")) each.open = each.querySelector("tbody").rows.length <= 8;
unfold(location.hash);
for (const head of document.querySelectorAll("th")) {
  const first = head.closest("table").tBodies[0].rows[0];
  if (first && !first.cells[head.cellIndex].className) head.classList.add("n");
}
for (const place of document.querySelectorAll(".scroll")) fitting.observe(place);
if (matchMedia("(max-width: 68rem)").matches) document.querySelector("nav details")?.removeAttribute("open");
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
}, { rootMargin: "600px" });
for (const plot of plots) seen.observe(plot);
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { for (const plot of drawn.keys()) if (plot.clientWidth) draw(plot); }, 150);
});
addEventListener("scroll", () => tip(null, null), { passive: true });
const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
(async () => {
  for (const plot of plots) {
    await new Promise((done) => idle(done));
    if (!drawn.has(plot)) await draw(plot);
  }
  root.dataset.drawn = "all";
})();
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details.chapter:not([open])")];
  for (const fold of folded) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of folded) fold.open = false; });
