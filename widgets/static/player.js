// What all views share: the frame around the drawing, its controls, keys, words and table.
// Imports nothing and asks the network for nothing. `play` returns its clean-up.

const MAX_HISTORY = 3000;
const PLAY_MS = 160;
const LIVE_STATUS_MS = 5000;

const put = (node, name, value) => { const text = String(value); if (node.getAttribute(name) !== text) node.setAttribute(name, text); };
const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const tableOf = ([caption, head, rows]) => {
  const table = make("table", {}, make("caption", {}, caption));
  table.append(make("thead", {}, make("tr", {}, ...head.map(h => make("th", { scope: "col" }, h)))));
  table.append(make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((cell, i) => (i ? make("td", {}, String(cell)) : make("th", { scope: "row" }, String(cell))))))));
  return table;
};

const HELP = "Keys, while the view has the focus: → and ← one frame on or back, Home and End first and last, " +
  "space play or pause, . (full stop) one step, L live, T table, ? this help.";

function play(model, el, view) {
  const viewId = Math.random().toString(36).slice(2);
  const mode = model.get("_mode"), controls = model.get("_controls"), title = model.get("title");
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let frames = JSON.parse(model.get("_frames"));
  let at = Math.min(model.get("_at"), frames.length - 1);
  let following = mode === "live", paused = false, done = false, timer = null, pending = 0, painted = 0;
  let lastStatus = 0, lastPaint = 0;

  const picture = make("div", { class: "sluice-holder" });
  picture.innerHTML = model.get("_picture");
  const status = make("p", { class: "sluice-status", role: "status" });
  const tables = make("div", { class: "sluice-tables", hidden: "" });
  const help = make("p", { class: "sluice-help", hidden: "" }, HELP);
  const bar = make("div", { class: "sluice-bar", role: "toolbar", "aria-label": `${title}: controls` });
  const root = make("div", { class: "sluice", role: "group", "aria-label": title, tabindex: "0", "data-testid": `sluice-${view.kind}` }, picture, bar, status, help, tables);

  const button = (id, symbol, words, keys, act) => {
    const node = make("button", { type: "button", "data-testid": `sluice-${id}`, "aria-keyshortcuts": keys }, make("span", { "aria-hidden": "true" }, symbol), ` ${words}`);
    node.addEventListener("click", act);
    bar.append(node);
    return node;
  };
  const send = content => model.send(content);

  // -- moving in time --
  const stop = () => { clearInterval(timer); timer = null; refresh(); };
  const go = (index, follow = false) => {
    following = follow && mode === "live";
    at = Math.max(0, Math.min(frames.length - 1, index));
    paint();
  };
  const step = () => {
    if (mode === "live") { if (controls.includes("step")) send({ type: "step", n: 1 }); else go(at + 1); }
    else if (mode === "stepped" && at === frames.length - 1) send({ type: "step", n: 1 });
    else go(at + 1);
  };
  const toggle = () => {
    if (mode === "live" && following && controls.includes("pause")) return send({ type: paused ? "resume" : "pause" });
    if (timer) return stop();
    if (at === frames.length - 1 && mode !== "stepped") go(0);
    timer = setInterval(() => {
      if (mode === "stepped" ? done && at === frames.length - 1 : at === frames.length - 1) stop(); else step();
    }, calm.matches ? 4 * PLAY_MS : PLAY_MS);
    return refresh();
  };
  const flip = (node, control) => {
    node.hidden = !node.hidden;
    put(control, "aria-expanded", !node.hidden);
    drawTables();
  };

  // -- controls --
  const range = make("input", { type: "range", min: "0", "data-testid": "sluice-range", "aria-label": "Frame" });
  range.addEventListener("input", () => { const wanted = +range.value; stop(); go(wanted); }); // stop() puts the old value back
  let playButton = null;
  if (mode !== "still") {
    button("first", "|◀", "First", "Home", () => { stop(); go(0); });
    button("back", "◁", "Back", "ArrowLeft", () => { stop(); go(at - 1); });
    playButton = button("play", "▶", "Play", "Space", toggle);
    button("step", "▷", mode === "live" && controls.includes("step") ? "Step the job" : "Step", ".", () => { stop(); step(); });
    if (mode === "stepped") button("ten", "▷▷", "Ten steps", "", () => { stop(); send({ type: "step", n: 10 }); });
    button("last", "▶|", mode === "live" ? "Live" : "Last", mode === "live" ? "L" : "End", () => { stop(); go(frames.length - 1, true); });
    bar.append(range);
  }
  const count = make("span", { class: "sluice-count" });
  bar.append(count);
  const tableButton = button("table", "▦", "Table", "T", () => flip(tables, tableButton));
  const helpButton = button("help", "?", "Keys", "?", () => flip(help, helpButton));
  for (const node of [tableButton, helpButton]) put(node, "aria-expanded", false);

  const KEYS = {
    ArrowRight: () => { stop(); go(at + 1); }, ArrowLeft: () => { stop(); go(at - 1); },
    Home: () => { stop(); go(0); }, End: () => { stop(); go(frames.length - 1, true); },
    " ": toggle, ".": () => { stop(); step(); }, l: () => { stop(); go(frames.length - 1, true); },
    t: () => flip(tables, tableButton), "?": () => flip(help, helpButton),
  };
  const onKey = event => {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[key]) return;
    if (event.target.tagName === "BUTTON" && key === " ") { event.stopPropagation(); return; } // presses the button
    event.preventDefault();
    event.stopPropagation(); // or the notebook takes the key
    KEYS[key]();
  };
  root.addEventListener("keydown", onKey);

  // -- drawing --
  const drawTables = () => { if (!tables.hidden) tables.replaceChildren(...view.tables(frames[at], at).map(tableOf)); };
  const words = () => `frame ${at + 1} of ${frames.length}`;
  const state = () => (mode !== "live" ? mode : !following ? "scrubbed" : done ? "done" : paused ? "paused" : "live");
  const announce = () => {
    const now = performance.now();
    const isQuick = following && state() === "live";
    if (isQuick && now - lastStatus < LIVE_STATUS_MS) return;
    lastStatus = now;
    say(status, `${mode === "still" ? "" : words() + ", "}${view.status(frames[at], at)}${done ? "; the job is done" : ""}`);
  };
  const refresh = () => {
    put(root, "data-mode", state());
    put(root, "data-seq", view.seq(frames[at], at));
    put(root, "data-at", at);
    put(root, "data-frames", frames.length);
    put(root, "data-painted", painted);
    put(range, "max", frames.length - 1);
    range.value = at;
    put(range, "aria-valuetext", `${words()}: ${view.status(frames[at], at)}`);
    say(count, mode === "still" ? "" : `${words()}${mode === "live" ? ` · ${state()}` : ""}`);
    if (playButton) {
      const isEngine = mode === "live" && following && controls.includes("pause");
      const isMoving = isEngine ? !paused : timer !== null;
      say(playButton.lastChild, isEngine ? (paused ? " Resume the job" : " Pause the job") : isMoving ? " Pause" : " Play");
      say(playButton.firstChild, isMoving ? "❚❚" : "▶");
      playButton.disabled = isEngine && done;
    }
  };
  const paintNow = () => {
    pending = 0;
    if (calm.matches && following && !paused && !done && performance.now() - lastPaint < 500) { pending = requestAnimationFrame(paintNow); return; }
    lastPaint = performance.now();
    if (following) at = frames.length - 1;
    view.draw(frames[at], at);
    painted += 1;
    drawTables();
    refresh();
    announce();
  };
  const paint = () => { if (!pending) pending = requestAnimationFrame(paintNow); };

  // -- the kernel speaks --
  const keep = added => {
    frames.push(...added);
    const surplus = frames.length - MAX_HISTORY;
    if (surplus > 0) { frames.splice(0, surplus); at = Math.max(0, at - surplus); }
  };
  const onMessage = content => {
    if (content.type === "frame") { keep([content.frame]); ({ paused, done } = content); put(root, "data-received", content.seq); }
    else if (content.type === "frames") { keep(content.frames); done = content.done; if (content.frames.length) at = frames.length - 1; }
    else if (content.type === "history") { frames = content.frames; done = content.done; at = frames.length - 1; }
    paint();
  };
  model.on("msg:custom", onMessage);

  // -- seen or not --
  let isOnScreen = false, wasVisible = false;
  const tell = () => {
    const isVisible = isOnScreen && !document.hidden;
    if (isVisible === wasVisible) return;
    wasVisible = isVisible;
    send({ type: isVisible ? "visible" : "hidden", view: viewId });
  };
  const observer = new IntersectionObserver(entries => { isOnScreen = entries.at(-1).isIntersecting; tell(); });
  if (mode === "live") { observer.observe(root); document.addEventListener("visibilitychange", tell); }

  const svg = picture.querySelector("svg");
  view.bind(svg, root);
  el.replaceChildren(root);
  paintNow();
  if (mode === "stepped") send({ type: "hello" });
  put(root, "data-ready", 1);

  return () => {
    clearInterval(timer);
    cancelAnimationFrame(pending);
    observer.disconnect();
    document.removeEventListener("visibilitychange", tell);
    model.off("msg:custom", onMessage);
    if (mode === "live" && wasVisible) send({ type: "hidden", view: viewId });
  };
}
