"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const by = (id) => document.getElementById(id);
  const sides = ["a", "b"];
  const state = { view: 0, by: "rank", at: { a: 0, b: 0 }, current: { side: "a", token: -1 } };
  const view = () => data.views[state.view];
  const reading = (side) => view().readings[state.at[side]];

  const grade = (value) => data.grades[state.by].ends.filter((end) => value > end).length;
  const number = (value) => (value >= 100 ? Math.round(value).toLocaleString("en") : String(value));

  // One element a token, made once for all models that cut the document alike; a slider only changes classes.
  function build(side) {
    const cut = view().cuts[reading(side).cut];
    const box = by(`text-${side}`);
    const parts = document.createDocumentFragment();
    let expected = 0;
    cut.positions.forEach((position, i) => {
      if (position !== expected) {
        const gap = document.createElement("i");
        gap.className = "gap";
        gap.textContent = "…";
        gap.title = "not scored";
        parts.append(gap);
      }
      expected = position + 1;
      const token = document.createElement("span");
      token.dataset.i = i;
      token.textContent = cut.texts[i].replace(/\n/g, "⏎\n");
      parts.append(token);
    });
    box.replaceChildren(parts);
    box.dataset.cut = reading(side).cut;
    box.dataset.view = state.view;
  }

  function paint(side) {
    const box = by(`text-${side}`);
    const one = reading(side);
    if (box.dataset.cut !== String(one.cut) || box.dataset.view !== String(state.view)) build(side);
    const values = one[state.by];
    for (const token of box.getElementsByTagName("span")) {
      const name = `g${grade(values[token.dataset.i])}`;
      if (token.className !== name) token.className = name;
    }
    const nats = one.nats.reduce((sum, each) => sum + each, 0) / Math.max(1, one.nats.length);
    const hits = one.rank.filter((rank) => rank === 1).length / Math.max(1, one.rank.length);
    by(`name-${side}`).textContent = one.name;
    by(`sums-${side}`).textContent =
      `${one.rank.length.toLocaleString("en")} scored tokens, ${nats.toFixed(3)} nats per token, rank 1 for ${(100 * hits).toFixed(0)} %`;
    by(`size-${side}`).setAttribute("aria-valuetext", one.name);
  }

  function tell() {
    const { side, token } = state.current;
    for (const old of document.querySelectorAll(".now")) old.classList.remove("now");
    if (token < 0) return;
    const one = reading(side);
    const cut = view().cuts[one.cut];
    const element = by(`text-${side}`).querySelector(`span[data-i="${token}"]`);
    if (!element) return;
    element.classList.add("now");
    const what = document.createElement("p");
    const code = document.createElement("code");
    code.textContent = JSON.stringify(cut.texts[token]);
    what.append(code, ` token ${cut.positions[token]}: rank ${number(one.rank[token])}, probability ${Math.exp(-one.nats[token]).toPrecision(3)} (${one.nats[token].toFixed(2)} nats) under ${one.name}${change(side, token)}`);
    const table = document.createElement("table");
    const alike = view().readings.map((each, i) => [each, i]).filter(([each]) => each.cut === one.cut);
    for (const [name, cell] of [["model", (r) => r.name], ["rank", (r) => number(r.rank[token])], ["probability", (r) => Math.exp(-r.nats[token]).toPrecision(2)]]) {
      const row = table.insertRow();
      const head = document.createElement("th");
      head.textContent = name;
      row.append(head);
      for (const [each, i] of alike) {
        const place = row.insertCell();
        place.textContent = cell(each);
        if (i === state.at[side]) place.className = "at";
      }
    }
    by("token").replaceChildren(what, ...best(one, token), table);
  }

  // The tokens that the model holds for more likely, where they were kept.
  function best(one, token) {
    if (!one.best) return [];
    const line = document.createElement("p");
    line.className = "best";
    line.append("best: ");
    for (const [text, nats] of one.best[token]) {
      const code = document.createElement("code");
      code.textContent = JSON.stringify(text);
      line.append(code, ` ${Math.exp(-nats).toPrecision(2)}  `);
    }
    return [line];
  }

  function change(side, token) {
    const before = view().readings[state.at[side] - 1];
    if (!before || before.cut !== reading(side).cut) return "";
    const ratio = Math.exp(before.nats[token] - reading(side).nats[token]);
    const moved = `rank ${number(before.rank[token])} → ${number(reading(side).rank[token])}`;
    return `; from ${before.name}: ${moved}, ${ratio >= 1 ? `${ratio.toPrecision(2)} times as likely` : `${(1 / ratio).toPrecision(2)} times less likely`}`;
  }

  function legend() {
    const names = data.grades[state.by].names;
    by("legend").replaceChildren(...names.map((name, at) => {
      const item = document.createElement("li");
      item.className = `g${at}`;
      item.textContent = name;
      return item;
    }));
  }

  function show() {
    by("title").textContent = view().title;
    for (const side of sides) {
      const slider = by(`size-${side}`);
      slider.max = view().readings.length - 1;
      slider.value = state.at[side];
      slider.hidden = view().readings.length < 2;
      if (!by(`panel-${side}`).hidden) paint(side);
    }
    legend();
    tell();
  }

  function start() {
    const last = view().readings.length - 1;
    state.at = view().pair ? { a: 0, b: 1 } : { a: last, b: 0 };
    state.current = { side: "a", token: -1 };
    by("beside").checked = view().pair;
    by("panel-b").hidden = !view().pair;
    show();
  }

  data.views.forEach((each, at) => by("text").add(new Option(each.title, at)));
  by("which").hidden = data.views.length < 2;
  by("text").addEventListener("change", (event) => { state.view = Number(event.target.value); start(); });
  by("beside").addEventListener("change", (event) => { by("panel-b").hidden = !event.target.checked; show(); });
  for (const radio of document.querySelectorAll("input[name=by]")) {
    radio.addEventListener("change", () => { state.by = radio.value; show(); });
  }
  by("controls").addEventListener("submit", (event) => event.preventDefault());
  for (const side of sides) {
    by(`size-${side}`).addEventListener("input", (event) => { state.at[side] = Number(event.target.value); show(); });
    const box = by(`text-${side}`);
    const point = (event) => {
      const i = event.target.dataset.i;
      if (i !== undefined) { state.current = { side, token: Number(i) }; tell(); }
    };
    box.addEventListener("mouseover", point);
    box.addEventListener("click", point);
    box.addEventListener("keydown", (event) => {
      const n = view().cuts[reading(side).cut].positions.length;
      const here = state.current.side === side ? state.current.token : -1;
      const moves = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: n - 1 };
      const sizes = { ArrowUp: 1, ArrowDown: -1 };
      if (event.key in moves) {
        state.current = { side, token: Math.min(n - 1, Math.max(0, moves[event.key])) };
        tell();
        box.querySelector(".now")?.scrollIntoView({ block: "nearest" });
      } else if (event.key in sizes) {
        state.at[side] = Math.min(view().readings.length - 1, Math.max(0, state.at[side] + sizes[event.key]));
        show();
      } else return;
      event.preventDefault();
    });
  }
  start();
})();
