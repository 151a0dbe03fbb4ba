// What all views share: the frame around the drawing, its controls, keys, words and table.
// Imports nothing and asks the network for nothing. `play` returns its clean-up.

const MAX_HISTORY = 3000;
const PLAY_MS = 160;
const LIVE_STATUS_MS = 5000;
const LIVE_WORDS_MS = 100; // nobody reads words faster, and laying them out is not free
const PATIENCE_MS = 4000;
const LEAST_SCALE = 0.8, LEAST_WIDTH = 660; // smaller, the words could not be read; so it is scrolled
const LOST = "No answer from the kernel: it is busy with a cell, or it was restarted. What was seen can still be looked at; for a new run, run the cell again.";

const WIDE = "[data-wide]";

const put = (node, name, value) => { const text = String(value); if (node.getAttribute(name) !== text) node.setAttribute(name, text); };
const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const keepReadable = svg => { svg.style.minWidth = `${Math.max(LEAST_WIDTH, LEAST_SCALE * svg.viewBox.baseVal.width)}px`; };
const tableOf = ([caption, head, rows]) => {
  const table = make("table", {}, make("caption", {}, caption));
  table.append(make("thead", {}, make("tr", {}, ...head.map(h => make("th", { scope: "col" }, h)))));
  table.append(make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((cell, i) => (i ? make("td", {}, String(cell)) : make("th", { scope: "row" }, String(cell))))))));
  return table;
};

// Icons of 16 by 16, drawn, since a font may lack a sign or show it as an emoji.
const ICONS = {
  first: "M3 3h2v10H3zM13 3v10L6 8z", back: "M11 3v10L4 8z", play: "M4 2.5v11l9-5.5z", pause: "M4 3h3v10H4zM9 3h3v10H9z",
  step: "M5 3v10l7-5z", ten: "M2 3v10l6-5zM8 3v10l6-5z", last: "M11 3h2v10h-2zM3 3v10l7-5z",
  table: "M1 2h14v12H1zM3 4v2h4V4zM9 4v2h4V4zM3 8v4h4V8zM9 8v4h4V8z", help: "M1 3h14v10H1zM3 5v2h2V5zM7 5v2h2V5zM11 5v2h2V5zM4 9v2h8V9z",
};
const icon = name => {
  const holder = make("span", { "aria-hidden": "true", class: "sluice-icon" });
  holder.innerHTML = `<svg viewBox="0 0 16 16" width="14" height="14"><path fill="currentColor" fill-rule="evenodd" d="${ICONS[name]}"/></svg>`;
  return holder;
};

const HELP = [["→ ←", "one frame on, one back"], ["Home End", "first frame, last frame"], ["Space", "play or pause"],
  [".", "one step"], ["L", "the newest frame of a live job"], ["T", "all numbers as a table"], ["?", "these keys"]];

function play(model, el, view, makeAnother = null) {
  const viewId = Math.random().toString(36).slice(2);
  const mode = model.get("_mode"), controls = model.get("_controls"), title = model.get("title");
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let error = "", lost = false;
  const stored = JSON.parse(model.get("_frames"));
  let frames = view.expand ? view.expand(stored) : stored;
  let at = Math.min(model.get("_at"), frames.length - 1);
  let following = mode === "live", paused = false, done = false, timer = null, pending = 0, painted = 0;
  let lastStatus = -Infinity, lastPaint = 0, lastWords = 0, speech = null, reading = null;

  const picture = make("div", { class: "sluice-holder" });
  const [, svgId] = model.get("_picture").match(/ id="([^"]+)"/);
  picture.innerHTML = model.get("_picture").replaceAll(svgId, `${svgId}-${viewId}`); // it may be on this page twice
  const sentence = make("p", { class: "sluice-sentence", "aria-hidden": "true" }); // as quick as the picture
  const status = make("p", { class: "sluice-status", role: "status" }); // the same for ears, which are slower
  const notice = make("p", { class: "sluice-notice", role: "alert", hidden: "" });
  const tables = make("div", { class: "sluice-tables", hidden: "" });
  const help = make("ul", { class: "sluice-help", hidden: "" });
  for (const [keys, words] of HELP) help.append(make("li", {}, ...keys.split(" ").map(key => make("kbd", {}, key)), make("span", {}, words)));
  const bar = make("div", { class: "sluice-bar", role: "toolbar", "aria-label": `${title}: controls` });
  const root = make("div", { class: "sluice", role: "group", "aria-label": title, tabindex: "0", "data-testid": `sluice-${view.kind}` }, picture, notice, bar, sentence, status, help, tables);

  const button = (group, id, words, keys, act) => {
    const node = make("button", { type: "button", title: words, "data-testid": `sluice-${id}`, ...(keys ? { "aria-keyshortcuts": keys } : {}) }, icon(id), make("span", { class: "sluice-words" }, words));
    node.addEventListener("click", act);
    group.append(node);
    return node;
  };
  // Whatever is sent is answered, unless nobody is there: a restarted kernel, or a stored notebook.
  let patience = null;
  const miss = () => { lost = mode !== "recorded" && mode !== "still"; stop(); };
  const send = content => {
    clearTimeout(patience);
    patience = setTimeout(miss, PATIENCE_MS);
    try { model.send(content); } catch { /* the comm is closed; patience will run out */ }
  };

  // -- moving in time --
  const stop = () => { clearInterval(timer); timer = null; refresh(); };
  const go = (index, follow = false) => {
    following = follow && mode === "live";
    at = Math.max(0, Math.min(frames.length - 1, index));
    paint();
  };
  const step = () => {
    if (mode === "live") { if (controls.includes("step")) send({ type: "step", n: 1 }); else go(at + 1); }
    else if (mode === "stepped" && at === frames.length - 1 && !error) send({ type: "step", n: 1 });
    else go(at + 1);
  };
  const toggle = () => {
    if (isEngine()) return send({ type: paused ? "resume" : "pause" });
    if (timer) return stop();
    const isGrowing = () => mode === "stepped" && !done && !error && !lost;
    if (at === frames.length - 1 && !isGrowing()) go(0);
    timer = setInterval(() => { if (at === frames.length - 1 && !isGrowing()) stop(); else if (mode === "live") go(at + 1); else step(); }, calm.matches ? 4 * PLAY_MS : PLAY_MS);
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
  const moves = make("div", { class: "sluice-group" }), extras = make("div", { class: "sluice-group" });
  let playButton = null, stepButton = null, tenButton = null;
  if (mode !== "still") {
    const stepWords = mode === "live" && controls.includes("step") ? "Step the job" : mode === "stepped" ? "Step" : "Next";
    button(moves, "first", "First", "Home", () => { stop(); go(0); });
    button(moves, "back", "Back", "ArrowLeft", () => { stop(); go(at - 1); });
    playButton = button(moves, "play", "Play", "Space", toggle);
    stepButton = button(moves, "step", stepWords, ".", () => { stop(); step(); });
    if (mode === "stepped") tenButton = button(moves, "ten", "Ten steps", "", () => { stop(); send({ type: "step", n: 10 }); });
    button(moves, "last", mode === "live" ? "Live" : "Last", mode === "live" ? "L" : "End", () => { stop(); go(frames.length - 1, true); });
    bar.append(moves, range);
  }
  const count = make("span", { class: "sluice-count" });
  bar.append(count, extras);
  const tableButton = button(extras, "table", "Table", "T", () => flip(tables, tableButton));
  const helpButton = button(extras, "help", "Keys", "?", () => flip(help, helpButton));
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
    if (event.target.matches(WIDE) && key.startsWith("Arrow")) { event.stopPropagation(); return; } // scrolls it
    if (event.target.tagName === "BUTTON" && key === " ") { event.stopPropagation(); return; } // presses the button
    event.preventDefault();
    event.stopPropagation(); // or the notebook takes the key
    KEYS[key]();
  };
  root.addEventListener("keydown", onKey);
  // What is wider than the page, as on a narrow one or a large zoom, can be focused and scrolled by arrows.
  const sizes = new ResizeObserver(() => {
    for (const node of root.querySelectorAll(".sluice-holder, .sluice-tables")) {
      const marks = { tabindex: 0, role: "group", "aria-label": node === tables ? "Tables: scroll sideways" : "Picture: scroll sideways", "data-wide": 1 };
      const isWide = node.scrollWidth > node.clientWidth;
      for (const [name, value] of Object.entries(marks)) if (isWide) put(node, name, value); else node.removeAttribute(name);
    }
  });
  sizes.observe(root);

  // -- choosing, forking --
  const stepper = controls.includes("fork") ? stepperOf({ model, viewId, root, picture, sentence, bar, help, send, stop, makeAnother, now: () => ({ at, frames }) }) : null;
  if (stepper) Object.assign(KEYS, stepper.keys);
  const members = controls.includes("members") ? membersOf({ bar, help, send, stop }) : null;
  if (members) Object.assign(KEYS, members.keys);
  const control = mode === "live" && controls.includes("slow") ? controlOf({ model, bar, send, controls }) : null;

  // -- drawing --
  const drawTables = () => { if (!tables.hidden) tables.replaceChildren(...[...view.tables(frames[at], at), ...(stepper?.tables(at) ?? [])].map(tableOf)); };
  const words = () => `frame ${at + 1} of ${frames.length}`;
  const state = () => (error && at === frames.length - 1 ? "failed" : mode !== "live" ? mode : !following ? "scrubbed" : done ? "done" : lost ? "lost" : paused ? "paused" : "live");
  const isEngine = () => mode === "live" && following && !done && !lost && controls.includes("pause");
  const told = () => `${view.status(frames[at], at)}${stepper?.told(at) ?? ""}${error && at === frames.length - 1 ? "; the job failed" : done && at === frames.length - 1 ? "; the job is done" : ""}`;
  const announce = () => {
    const wait = following && state() === "live" ? lastStatus + LIVE_STATUS_MS - performance.now() : 0;
    clearTimeout(speech);
    if (wait > 0) { speech = setTimeout(announce, wait); return; } // later: it may be the last one for long
    lastStatus = performance.now();
    say(status, `${mode === "still" ? "" : words() + ", "}${told()}`);
  };
  const refresh = isQuick => {
    put(root, "data-mode", state());
    put(root, "data-seq", view.seq(frames[at], at));
    put(root, "data-at", at);
    put(root, "data-frames", frames.length);
    put(root, "data-painted", painted);
    if (isQuick) return;
    put(range, "max", frames.length - 1);
    range.value = at;
    put(range, "aria-valuetext", `${words()}: ${view.status(frames[at], at)}`);
    say(count, mode === "still" ? "" : words());
    put(count, "data-state", state());
    say(sentence, told());
    say(notice, error ? `The job failed. ${error}` : lost ? LOST : "");
    notice.hidden = !notice.textContent;
    if (playButton) {
      const isMoving = isEngine() ? !paused : timer !== null;
      const playWords = isEngine() ? (paused ? "Resume the job" : "Pause the job") : isMoving ? "Pause" : "Play";
      say(playButton.lastChild, playWords);
      put(playButton, "title", playWords);
      put(playButton.querySelector("path"), "d", ICONS[isMoving ? "pause" : "play"]);
      const isOver = (done || error) && at === frames.length - 1;
      if (mode === "stepped") { stepButton.disabled = !!isOver; tenButton.disabled = !!(done || error); }
    }
  };
  const paintNow = () => {
    pending = 0;
    if (calm.matches && following && !paused && !done && performance.now() - lastPaint < 500) { pending = requestAnimationFrame(paintNow); return; }
    lastPaint = performance.now();
    if (following) at = frames.length - 1;
    const wait = following && state() === "live" ? lastWords + LIVE_WORDS_MS - lastPaint : 0;
    clearTimeout(reading);
    if (wait > 0) reading = setTimeout(paint, wait + LIVE_WORDS_MS); // with one of the next frames, if there are any
    else lastWords = lastPaint;
    view.draw(frames[at], at, wait > 0);
    stepper?.draw(at);
    painted += 1;
    if (wait <= 0) drawTables();
    refresh(wait > 0);
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
    clearTimeout(patience);
    lost = false;
    if (content.type === "frame") { keep([content.frame]); ({ paused, done, error } = content); put(root, "data-received", content.seq); }
    else if (content.type === "frames") { keep(content.frames); ({ done, error } = content); if (content.frames.length) at = frames.length - 1; }
    else if (content.type === "refused") (stepper ?? control ?? members)?.refuse(content.words);
    else if (content.type === "run") stepper?.save(content);
    else if (content.type === "history") { ({ frames, done, error } = content); at = frames.length - 1; }
    if (content.enabled) stepper?.hear(content);
    if (content.members) members?.hear(content.members);
    paint();
  };
  model.on("msg:custom", onMessage);
  model.on("comm_live_update", miss); // JupyterLab says so when it restarts a kernel

  // -- seen or not --
  let isOnScreen = false, wasVisible = false;
  const tell = () => {
    const isVisible = isOnScreen && !document.hidden;
    if (isVisible === wasVisible) return;
    wasVisible = isVisible;
    send({ type: isVisible ? "visible" : "hidden", view: viewId });
    if (!isVisible) clearTimeout(patience); // to this there is no answer
  };
  const observer = new IntersectionObserver(entries => { isOnScreen = entries.at(-1).isIntersecting; tell(); });
  if (mode === "live") { observer.observe(root); document.addEventListener("visibilitychange", tell); }

  const svg = picture.querySelector("svg");
  keepReadable(svg);
  view.bind(svg, root);
  el.replaceChildren(root);
  paintNow();
  if (mode === "stepped") send({ type: "hello" });
  put(root, "data-ready", 1);

  return () => {
    clearInterval(timer);
    control?.stop();
    clearTimeout(speech);
    clearTimeout(reading);
    cancelAnimationFrame(pending);
    observer.disconnect();
    sizes.disconnect();
    document.removeEventListener("visibilitychange", tell);
    model.off("msg:custom", onMessage);
    model.off("comm_live_update", miss);
    if (mode === "live" && wasVisible) send({ type: "hidden", view: viewId });
    clearTimeout(patience);
  };
}
