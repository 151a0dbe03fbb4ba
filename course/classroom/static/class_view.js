// The class as its instructor sees it: one drawing for the notebook and for the page on the projector.
// Imports nothing. Whatever a learner sent becomes text, never markup: nothing here writes HTML.

const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== false) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

const FAILING = new Set(["failed", "error", "timeout"]);
const SYMBOLS = { passed: "✓", caught_up: "◧", not_started: "·", failed: "✗", error: "✗", timeout: "✗" };
const WORDS = { passed: "passed", caught_up: "caught up", not_started: "not started", failed: "fails", error: "stops with an error", timeout: "runs out of time" };
const LEGEND = [["passed", "✓", "passed"], ["failed", "E", "fails, by which rule"], ["caught_up", "◧", "caught up"], ["not_started", "·", "not started"], ["stuck", "\u00a0", "stuck for 8 minutes"], ["", "(name)", "away"]];
const MOST_RULES = 6, MOST_STUCK = 12;
const STATUS_MS = 5000; // for ears, a room changes too often
const SURE_MS = 6000;

// One learner in one exercise: a mark for the eye, the whole for the ear and for whoever points at it.
function cellOf(cell, handle, exercise, opens) {
  const fails = FAILING.has(cell.status);
  const words = `${handle}, ${exercise.id} ${exercise.title}: ${WORDS[cell.status] ?? "not started"}${fails && cell.rule ? ` rule ${cell.rule}` : ""}, ${count(cell.attempts, "attempt")}, ${cell.minutes} min${cell.stuck ? ", stuck" : ""}`;
  const mark = make("span", { class: "sluice-mark", "aria-hidden": "true" }, fails && cell.rule ? cell.rule : SYMBOLS[cell.status] ?? "·");
  return make("td", { "data-status": fails ? "failed" : cell.status, "data-stuck": cell.stuck ? 1 : null, "data-opens": opens, tabindex: -1, title: words }, mark, make("span", { class: "sluice-ear" }, words));
}

// What the room has done with each exercise; a row that would be empty is left out, but for the first.
const TOTALS = [
  ["passed", "✓ passed", "passed", each => each.passed],
  ["failed", "✗ failing", "failing now", each => each.tried],
  ["stuck", "! stuck", "stuck", each => each.stuck],
  ["hints", "hints to", "hints open to", each => each.unlocked],
];

function headOf(model, opens) {
  const lessons = model.exercises.filter((each, at) => opens(at));
  const above = lessons.map(({ lesson }) => make("th", { scope: "colgroup", "data-opens": 1, colspan: model.exercises.filter(each => each.lesson === lesson).length, title: `lesson ${lesson}` },
    make("span", { class: "sluice-ear" }, "lesson "), String(lesson)));
  const ids = model.exercises.map((each, at) => {
    const here = each.id === model.checkpoint;
    const words = `${each.id} ${each.title}${here ? ", the class is here" : ""}: ${each.passed} of ${model.learners.length} passed${each.minutes ? `, ${each.minutes} min` : ""}${each.unlocked ? `, hints to ${each.unlocked}` : ""}`;
    return make("th", { scope: "col", "data-here": here ? 1 : null, "data-opens": opens(at), title: words },
      make("span", { class: "sluice-id", "aria-hidden": "true" }, each.id.split(".").at(-1)), make("span", { class: "sluice-ear" }, words));
  });
  const totals = TOTALS.filter(([, , , of], number) => !number || model.exercises.some(of)).map(([kind, shown, words, of]) =>
    make("tr", { class: "sluice-total", "data-total": kind }, make("th", { scope: "row" }, shown), ...model.exercises.map((each, at) => {
      const cell = make("td", { "data-opens": opens(at), title: `${each.id} ${each.title}: ${of(each)} ${words}` }, make("span", { "aria-hidden": "true" }, of(each) ? String(of(each)) : ""), make("span", { class: "sluice-ear" }, `${words} ${of(each)}`));
      cell.style.setProperty("--share", kind === "hints" ? 0 : of(each) / Math.max(1, model.learners.length));
      return cell;
    })));
  return make("thead", {}, make("tr", {}, make("th", { scope: "row" }, "Lesson"), ...above), make("tr", {}, make("th", { scope: "row" }, "Exercise"), ...ids), ...totals);
}

function drawGrid(model, hides) {
  const opens = at => at === 0 || model.exercises[at - 1].lesson !== model.exercises[at].lesson ? 1 : null;
  const rows = model.learners.map((learner, number) => {
    const name = hides ? `learner ${number + 1}` : learner.handle;
    return make("tr", { "data-here": learner.here ? 1 : 0 },
      make("th", { scope: "row", title: learner.here ? name : `${name}, away` }, learner.here ? name : `(${name})`, learner.here ? "" : make("span", { class: "sluice-ear" }, " away")),
      ...learner.cells.map((cell, at) => cellOf(cell, name, model.exercises[at], opens(at))));
  });
  const table = make("table", { class: "sluice-grid", role: "grid" }, make("caption", {}, "Learners and exercises"), headOf(model, opens), make("tbody", {}, ...rows));
  table.style.setProperty("--rows", rows.length);
  table.style.setProperty("--columns", model.exercises.length);
  return table;
}

// The grid is one stop for the tab key. Arrows, Home and End walk over its marks, and a repaint keeps the place.
function walking(grid, detail) {
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -Infinity], End: [0, Infinity], PageUp: [-10, 0], PageDown: [10, 0] };
  let model = null, place = ["", ""];
  const within = (value, length) => Math.min(length - 1, Math.max(0, value));
  const spot = () => [within(model.learners.findIndex(each => each.handle === place[0]), model.learners.length), within(model.exercises.findIndex(each => each.id === place[1]), model.exercises.length)];
  const stand = (row, column) => {
    const marks = grid.querySelector("tbody").rows;
    grid.querySelector("td[tabindex='0']")?.setAttribute("tabindex", -1);
    place = [model.learners[row].handle, model.exercises[column].id];
    const cell = marks[row].cells[column + 1];
    cell.setAttribute("tabindex", 0);
    return cell;
  };
  const tell = event => { const cell = event.target.closest?.("td, th"); if (cell) say(detail, cell.title); };
  grid.addEventListener("focusin", event => { tell(event); const cell = event.target.closest("tbody td"); if (cell) stand(cell.parentNode.sectionRowIndex, cell.cellIndex - 1); });
  grid.addEventListener("pointerover", tell);
  grid.addEventListener("keydown", event => {
    const step = STEPS[event.key], cell = event.target.closest("tbody td");
    if (!step || !cell || event.altKey || event.metaKey) return;
    event.preventDefault();
    stand(within(cell.parentNode.sectionRowIndex + step[0] * (event.ctrlKey ? Infinity : 1) || 0, model.learners.length), within(cell.cellIndex - 1 + step[1], model.exercises.length)).focus();
  });
  return (next, table) => {
    const isIn = grid.contains(document.activeElement) || grid.contains(grid.getRootNode().activeElement), { scrollLeft, scrollTop } = grid;
    model = next;
    grid.replaceChildren(table);
    if (!model.learners.length || !model.exercises.length) return;
    const cell = stand(...spot());
    grid.scrollTo(scrollLeft, scrollTop);
    if (isIn) cell.focus({ preventScroll: true });
  };
}

// Rules by exercise: the darker, the more learners it stops now. The number says the same.
function drawHeat(model) {
  const shown = model.exercises.filter(each => model.rules.some(row => row.exercise === each.id && row.ever));
  if (!shown.length) return make("p", { class: "sluice-small" }, "No rule has failed yet.");
  const most = Math.max(1, ...model.rules.map(row => row.now));
  const body = shown.map(each => make("tr", {}, make("th", { scope: "row" }, each.id),
    make("td", {}, make("ul", { class: "sluice-heat" }, ...model.rules.filter(row => row.exercise === each.id).map(row => {
      const words = `rule ${row.rule}, ${row.title}: stops ${count(row.now, "learner")} now, stopped ${row.ever} so far`;
      const box = make("li", { title: words, "data-now": row.now, "data-rule": row.rule }, make("span", { class: "sluice-rule", "aria-hidden": "true" }, row.rule), make("span", { class: "sluice-number", "aria-hidden": "true" }, row.now ? String(row.now) : row.ever ? "·" : ""), make("span", { class: "sluice-ear" }, words));
      box.style.setProperty("--heat", row.now ? 0.15 + 0.55 * row.now / most : 0);
      return box;
    })))));
  return make("table", { class: "sluice-heatmap" }, make("caption", {}, "Which rule stops whom"), make("tbody", {}, ...body));
}

function drawWorst(model) {
  const worst = model.rules.filter(row => row.now).sort((a, b) => b.now - a.now).slice(0, MOST_RULES);
  return make("ol", { class: "sluice-worst" }, ...worst.map(row => make("li", {},
    make("strong", {}, count(row.now, "learner")), ` ${row.exercise} rule ${row.rule}: ${row.title}`,
    make("span", { class: "sluice-small" }, row.hints ? ` · ${count(row.hints, "hint")} asked` : ""),
    row.specimen ? make("div", { class: "sluice-small" }, `the belief to talk about: ${row.belief} (sluice zoo ${row.exercise}: ${row.specimen})`) : "")));
}

function drawStuck(model, hides) {
  if (!model.stuck.length) return make("p", { class: "sluice-small" }, model.num_here ? "Nobody is stuck: all who are here have passed, or tried something new in the last 8 minutes." : "Nobody is here now.");
  const place = new Map(model.learners.map((learner, number) => [learner.handle, number + 1]));
  const more = model.stuck.length - MOST_STUCK;
  return make("ul", { class: "sluice-stuck" }, ...model.stuck.slice(0, MOST_STUCK).map(each => make("li", {},
    make("strong", {}, `! ${hides ? `learner ${place.get(each.handle)}` : each.handle}`), ` ${each.exercise}, ${each.minutes} min, ${each.rule ? `rule ${each.rule}: ${each.title}` : "no attempt yet"}`,
    make("span", { class: "sluice-small" }, ` (${count(each.attempts, "attempt")}, ${each.hint ? `hint ${each.hint} of 5` : "no hint"})`))), ...(more > 0 ? [make("li", { class: "sluice-small" }, `and ${more} more, marked in the grid`)] : []));
}

// The decisions. Those that reach into everybody's work want a second click.
function controls(act) {
  const exercise = make("select", { "aria-label": "Exercise", "data-testid": "sluice-exercise" });
  const rung = make("select", { "aria-label": "Hint", "data-testid": "sluice-rung" }, ...[1, 2, 3, 4, 5, 0].map(n => make("option", { value: n }, n ? `hint ${n}` : "lock again")));
  const status = make("p", { class: "sluice-said", role: "status" });
  const bar = make("div", { class: "sluice-actions", role: "toolbar", "aria-label": "Decide for all" }, make("label", {}, "For all, in ", exercise));
  let model = null, armed = null, timer = null, chosen = false;
  const disarm = () => { clearTimeout(timer); if (armed) { say(armed.node, armed.words); armed.node.removeAttribute("data-armed"); armed = null; } };
  const button = (id, words, order, asks) => {
    const node = make("button", { type: "button", "data-testid": `sluice-${id}` }, words);
    node.addEventListener("click", () => {
      if (asks && armed?.node !== node) {
        disarm();
        armed = { node, words };
        say(node, asks());
        node.setAttribute("data-armed", 1);
        timer = setTimeout(disarm, SURE_MS);
        return;
      }
      disarm();
      say(status, "…");
      act(order(), answer => say(status, answer));
    });
    return node;
  };
  const lessonOf = () => model.exercises.find(each => each.id === exercise.value).lesson;
  const all = () => count(model.learners.length, "learner");
  const unlock = button("unlock", "Unlock", () => ({ kind: "unlock", exercise: exercise.value, rung: +rung.value }));
  bar.append(
    button("checkpoint", "We are here now", () => ({ kind: "checkpoint", exercise: exercise.value })),
    make("span", { class: "sluice-pair" }, rung, unlock),
    button("reset", "Start afresh", () => ({ kind: "reset", exercise: exercise.value }), () => `Really reset ${exercise.value} for ${all()}?`),
    button("catchup", "Catch up to it", () => ({ kind: "catchup", lesson: lessonOf() }), () => `Really open all before lesson ${lessonOf()} for ${all()}?`));
  exercise.addEventListener("change", () => { chosen = true; disarm(); });
  return {
    node: make("section", { class: "sluice-decide", "aria-label": "Decide" }, bar, status),
    update(next) {
      const before = exercise.value;
      if (!model || model.exercises.map(each => each.id).join() !== next.exercises.map(each => each.id).join())
        exercise.replaceChildren(...next.exercises.map(each => make("option", { value: each.id }, `${each.id} ${each.title}`)));
      // Until somebody chooses, it is about where the class is.
      const wanted = chosen || armed ? before : next.checkpoint || before;
      if (wanted) exercise.value = wanted;
      model = next;
    },
  };
}

function summary(model) {
  const at = model.exercises.find(each => each.id === model.checkpoint);
  return [`${count(model.learners.length, "learner")}, ${model.num_here} here now`,
    ...(at ? [`checkpoint ${at.id}: ${at.passed} of ${model.learners.length} passed`] : []),
    ...(model.stuck.length ? [`${model.stuck.length} stuck`] : [])].join(" · ");
}

export function classView(act) {
  const title = make("h2"), told = make("p", { class: "sluice-summary", "aria-hidden": "true" }), heard = make("p", { class: "sluice-ear", role: "status" }), code = make("span", { class: "sluice-code" });
  const join = make("p", { class: "sluice-join" }, "Join: ", code);
  const notice = make("p", { class: "sluice-notice", role: "alert", hidden: "" });
  const hide = make("button", { type: "button", "aria-pressed": "false", "data-testid": "sluice-hide" }, "Hide handles");
  const grid = make("section", { class: "sluice-part", "aria-label": "Grid", "data-lm-suppress-shortcuts": "true" }), detail = make("p", { class: "sluice-detail", "aria-hidden": "true" }, "Point at a mark, or walk with the arrow keys: here it is in words."), heat = make("div"), worst = make("div"), stuck = make("section", { "aria-label": "Stuck" });
  const decide = controls(act);
  const side = make("section", { class: "sluice-side", "aria-label": "What stops learners" }, make("h3", {}, "Misconceptions"), heat, worst, make("h3", {}, "Stuck"), stuck);
  const legend = make("p", { class: "sluice-legend", "data-testid": "sluice-legend" }, ...LEGEND.map(([status, mark, words]) => make("span", {}, make("span", { class: "sluice-key", "data-status": status, "data-stuck": status === "stuck" ? 1 : null }, mark), ` ${words}`)));
  const show = walking(grid, detail);
  const root = make("div", { class: "sluice-class", role: "group", "aria-label": "Class", "data-testid": "sluice-class" },
    make("header", {}, make("div", { class: "sluice-title" }, title, told, heard), make("div", { class: "sluice-right" }, join, hide)),
    notice, decide.node, make("div", { class: "sluice-two" }, make("div", { class: "sluice-room" }, legend, grid, detail), side));
  let model = null, hides = false, hearing = null, painted = 0;
  const draw = () => {
    if (!model) return;
    say(title, model.title);
    say(told, summary(model));
    hearing ??= setTimeout(() => { hearing = null; say(heard, summary(model)); }, heard.textContent ? STATUS_MS : 0);
    say(code, `sluice join ${model.code}@${model.address || "HOST:PORT"} --handle NAME${model.certificate ? ` --tls ${model.certificate}` : ""}`);
    notice.hidden = !model.trouble;
    say(notice, model.trouble ?? "");
    decide.update(model);
    show(model, model.learners.length ? drawGrid(model, hides) : make("p", {}, "Nobody has joined yet. Show the line above; the first learner appears here within a second."));
    heat.replaceChildren(drawHeat(model));
    worst.replaceChildren(drawWorst(model));
    stuck.replaceChildren(drawStuck(model, hides));
    root.setAttribute("data-painted", ++painted);
  };
  hide.addEventListener("click", () => {
    hides = !hides;
    hide.setAttribute("aria-pressed", hides);
    draw();
  });
  let pending = null;
  return {
    root,
    update(next) {
      model = next;
      // Somebody may be reading a cell or choosing: a repaint that changes nothing is none.
      const text = JSON.stringify(next);
      if (text === pending) return;
      pending = text;
      draw();
    },
    tell(sentence) { notice.hidden = !sentence; say(notice, sentence); pending = sentence ? null : pending; },
  };
}

export default {
  render({ model, el }) {
    let answered = null;
    const view = classView((order, answer) => { answered = answer; model.send({ type: "order", order }); });
    const refresh = () => { const text = model.get("_model"); if (text) view.update(JSON.parse(text)); };
    const onMessage = content => { if (content.type === "said") answered?.(content.said); };
    const tell = isVisible => { try { model.send({ type: isVisible ? "visible" : "hidden" }); } catch { /* no kernel */ } };
    model.on("change:_model", refresh);
    model.on("msg:custom", onMessage);
    el.replaceChildren(view.root);
    refresh();
    const observer = new IntersectionObserver(entries => tell(entries.at(-1).isIntersecting));
    observer.observe(view.root);
    return () => { observer.disconnect(); tell(false); model.off("change:_model", refresh); model.off("msg:custom", onMessage); };
  },
};
