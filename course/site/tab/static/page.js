import { editor } from "./editor.js";
import { mount } from "./model.js";
import { checker } from "./checker.js";

const $ = id => document.getElementById(id);
const PATIENCE_MS = 20_000;
const SAYS = JSON.parse($("says").textContent); // in the language of this page
const say = (name, values = {}) => SAYS[name].replace(/\{(\w+)\}/g, (_, blank) => values[blank]);
const SIGNS = { passed: "✓", not_started: "○", caught_up: "◧", failed: "✗" };
const FIRST = `job = StreamEnvironment(Config(segment_size_bytes=16, num_buffers=4))
job.from_collection(range(12)).map(lambda n: n * n).rebalance().sink(print)
`;

// What a reload must not lose. A browser may keep nothing, as in a private window: then that is said.
const keep = (name, text) => {
  try { localStorage.setItem(`sluice:${name}`, text); } catch { $("kept").textContent = say("keeps_nothing"); }
};
const forget = name => { try { localStorage.removeItem(`sluice:${name}`); } catch { /* it keeps nothing anyway */ } };
const kept = name => { try { return localStorage.getItem(`sluice:${name}`); } catch { return null; } };

// -- the engine ---------------------------------------------------------------------------------------------

let engine, shown = null, job = kept("job") ?? FIRST;
const asked = new Map();

function begin() {
  engine = new Worker("./engine_worker.js", { type: "module", name: SAYS.language });
  engine.onmessage = ({ data }) => {
    if ("view" in data) { if (shown?.view === data.view) shown.hear(data.content); return; }
    const waiting = asked.get(data.id);
    asked.delete(data.id);
    "error" in data ? waiting?.fail(new Error(data.error)) : waiting?.done(data.answer); // nobody waits for what a view said
  };
}
let number = 0;
const ask = (name, ...given) => new Promise((done, fail) => {
  const id = ++number;
  asked.set(id, { done, fail });
  engine.postMessage({ id, name, given });
});

async function start() {
  begin();
  const found = await ask("lessons");
  const progress = kept("progress");
  return { ...found, ...(progress ? await ask("take_in", progress) : {}) };
}

// -- a job, step by step ------------------------------------------------------------------------------------

const jobEditor = editor($("job"), say("your_job"), text => { job = text; keep("job", text); }, () => show());
jobEditor.text = job;

async function show() {
  $("said").textContent = "";
  $("run").disabled = true;
  // A job of the reader's may have no end: the engine is then begun anew, and what was written stays.
  const over = setTimeout(() => {
    engine.terminate();
    asked.clear();
    $("said").textContent = say("not_ready");
    start().then(() => { $("run").disabled = false; });
  }, PATIENCE_MS + 5 * booted);
  try {
    const seed = await ask("show", jobEditor.text);
    shown?.end();
    shown = null;
    const early = [];
    shown = { view: seed.view, hear: content => early.push(content), end() {} };
    shown = { view: seed.view, ...await mount($("view"), seed, content => { engine.postMessage({ id: 0, name: "hear", given: [seed.view, content] }); }) };
    early.forEach(shown.hear);
  } catch (error) {
    $("said").textContent = error.message;
  }
  clearTimeout(over);
  $("run").disabled = false;
}

// -- exercises ----------------------------------------------------------------------------------------------

let current = null, booted = 0;
const partEditor = editor($("part"), say("your_part"), text => { if (current) keep(`part:${current.id}`, text); }, () => check());
const check_ = checker(ask);

function list({ lessons }) {
  $("lessons").replaceChildren(...lessons.map(lesson => {
    const group = document.createElement("div"), head = document.createElement("p"), link = document.createElement("a"), items = document.createElement("ul");
    link.href = `${SAYS.pages}${lesson.name}.html`;
    link.textContent = lesson.title;
    head.append(`${lesson.number}. `, link);
    items.append(...lesson.exercises.map(({ id, title }) => {
      const item = document.createElement("li"), button = document.createElement("button");
      Object.assign(button, { type: "button", onclick: () => { location.hash = id; } });
      button.dataset.exercise = id;
      button.dataset.title = title;
      item.append(button);
      return item;
    }));
    group.append(head, items);
    return group;
  }));
}

function stand({ standings, words, squares, progress }) {
  $("standing").textContent = `${squares} ${words}`;
  for (const button of document.querySelectorAll("[data-exercise]")) {
    const { exercise, title } = button.dataset, stands = standings[exercise] in SIGNS ? standings[exercise] : "failed";
    button.textContent = `${SIGNS[stands]} ${exercise} ${title}`;
    button.setAttribute("aria-label", say("standing", { exercise, title, words: say(stands) }));
  }
  if (progress) keep("progress", progress);
  known = progress;
}
let known = "";

async function open(id, focus) {
  const found = await ask("part", id);
  current = found;
  keep("open", id);
  $("exercise").hidden = false;
  $("title").textContent = `${found.id} ${found.title}`;
  $("about").textContent = found.why_not || say("in_flink", { name: found.flink });
  partEditor.text = kept(`part:${id}`) ?? found.stub;
  for (const name of ["check", "afresh", "save"]) $(name).disabled = Boolean(found.why_not);
  $("part").hidden = Boolean(found.why_not);
  $("report").textContent = "";
  delete $("report").dataset.status;
  for (const button of document.querySelectorAll("[data-exercise]")) {
    button.dataset.exercise === id ? button.setAttribute("aria-current", "true") : button.removeAttribute("aria-current");
  }
  if (focus) { $("title").focus(); $("title").scrollIntoView(); }
}

async function check() {
  if ($("check").disabled || !current) return;
  const { id } = current;
  $("check").disabled = true;
  $("report").textContent = say("checking");
  delete $("report").dataset.status;
  try {
    const found = await check_.check(id, partEditor.text);
    if (current.id === id) {
      $("report").textContent = found.text;
      $("report").dataset.status = found.status;
    }
    stand(found);
  } catch (error) {
    $("report").textContent = `! ${error.message}`;
    $("report").dataset.status = "trouble";
  }
  $("check").disabled = false;
}

function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

$("run").onclick = show;
$("check").onclick = check;
$("afresh").onclick = () => { partEditor.text = current.stub; forget(`part:${current.id}`); };
$("save").onclick = () => download(`exercise_${current.id.replace(".", "_")}.py`, partEditor.text);
$("export").onclick = () => download("progress.jsonl", known);
$("import").onchange = async event => {
  const [file] = event.target.files;
  event.target.value = "";
  try {
    stand(await ask("take_in", await file.text()));
    $("kept").textContent = say("taken_in", { file: file.name });
  } catch (error) {
    $("kept").textContent = `! ${error.message}`;
  }
};
addEventListener("hashchange", () => { if (location.hash) open(location.hash.slice(1), true).catch(error => { $("state").textContent = error.message; }); });

// -- the theme, as JupyterLab would say it to a view --------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => { document.documentElement.dataset.jpThemeLight = String(!dark.matches); };
dark.addEventListener("change", follow);
follow();

// -- the beginning ------------------------------------------------------------------------------------------

try {
  const found = await start();
  booted = performance.now();
  list(found);
  stand(found);
  await show();
  const first = found.lessons.flatMap(lesson => lesson.exercises)[0].id;
  await open(location.hash.slice(1) || kept("open") || first, Boolean(location.hash));
  for (const name of ["run", "export", "import"]) $(name).disabled = false;
  $("state").textContent = say("here");
  document.documentElement.dataset.ready = Math.round(performance.now());
  // Last, because filling the cache takes the same processor and the same line.
  if ("serviceWorker" in navigator) {
    navigator.serviceWorker.register("./sw.js").then(() => navigator.serviceWorker.ready).then(() => {
      document.documentElement.dataset.offline = "";
      $("state").textContent = say("here_offline");
    }, error => { $("state").textContent = say("here_online", { why: error.message }); });
  }
} catch (error) {
  $("state").textContent = `! ${error.message}`;
  $("state").className = "bad";
}
