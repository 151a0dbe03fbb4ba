// Choosing what goes next, two branches beside each other, a run as a file: what a view of a Stepper has besides the player.

const MOST_FILE_BYTES = 2e6; // a run of 10000 steps has less, and a Jupyter server drops a connection at 10 MB

function stepperOf({ model, viewId, root, picture, sentence, bar, help, send, stop, makeAnother, now }) {
  let other = [], fork = null, twin = null, differs = -1, enabled = null; // null: the kernel has not spoken

  const choices = make("div", { class: "sluice-moves", role: "group", "aria-label": "What can happen next" });
  const push = (words, id, act, keys = "") => {
    const node = make("button", { type: "button", "data-testid": `sluice-${id}`, ...(keys ? { "aria-keyshortcuts": keys } : {}) }, words);
    node.addEventListener("click", act);
    return node;
  };
  const seed = make("input", { type: "number", min: "0", step: "1", "aria-label": "Seed", "data-testid": "sluice-seed" });
  const reset = () => send({ type: "reset", seed: Math.max(0, Math.trunc(+seed.value || 0)) });
  const open = push("Fork here (F)", "fork", () => toggleForm(), "F");
  const file = make("input", { type: "file", accept: ".json,application/json", hidden: "", "aria-label": "A file of a run", "data-testid": "sluice-file" });
  const acts = make("div", { class: "sluice-acts" }, push("Run to the end", "run", () => { stop(); send({ type: "run" }); }), open, make("label", {}, "Seed ", seed), push("Reset", "reset", reset),
    push("Save as a file", "save", () => send({ type: "save" })), push("Open a file", "open", () => file.click()), file);

  const what = make("select", { "aria-label": "What to change", "data-testid": "sluice-fork-what" });
  const much = make("input", { type: "number", min: "0", step: "any", value: "2", "aria-label": "To how much", "data-testid": "sluice-fork-much" });
  const go = make("button", { type: "submit", "data-testid": "sluice-fork-go" }, "Fork");
  const form = make("form", { class: "sluice-fork", hidden: "", "aria-label": "Fork from this moment" }, make("label", {}, "From here on: ", what), make("label", {}, " = ", much), go);
  const refusal = make("p", { class: "sluice-notice", role: "alert", hidden: "" });
  const refuse = words => { say(refusal, words); refusal.hidden = !words; };
  const save = ({ name, text }) => {
    const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "application/json" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    refuse("");
    if (chosen.size > MOST_FILE_BYTES) refuse(`${chosen.name}: too big for a run, ${(chosen.size / 1e6).toFixed(1)} MB; the most is ${MOST_FILE_BYTES / 1e6} MB`);
    else await chosen.text().then(text => { stop(); send({ type: "open", name: chosen.name, text }); }, error => refuse(`${chosen.name}: it cannot be read: ${error.message}`));
    file.value = ""; // or the same file could not be chosen again
  });
  const toggleForm = (isOpen = form.hidden) => {
    form.hidden = !isOpen;
    put(open, "aria-expanded", isOpen);
    if (isOpen) { say(go, `Fork from step ${now().at}`); what.focus(); } else open.focus();
  };
  form.addEventListener("submit", event => {
    event.preventDefault();
    const value = +much.value, task = what.value.startsWith("slow:") ? what.value.slice(5) : null;
    send({ type: "fork", at: now().at, change: task ? { slow: task, delay_ms: value } : { [what.value]: Math.trunc(value) } });
    toggleForm(false);
  });
  const own = make("div", { class: "sluice-stepper", "data-testid": "sluice-stepper" }, choices, acts, form, refusal);
  // In a field, keys are the field's; Escape leaves it.
  own.addEventListener("keydown", event => {
    if (!["INPUT", "SELECT"].includes(event.target.tagName)) return;
    event.stopPropagation();
    if (event.key === "Escape") toggleForm(false);
  });
  bar.after(own);
  for (const [keys, words] of [["F", "fork from this moment"], ["1 2 … 9", "do that action next"]]) {
    help.append(make("li", {}, ...keys.split(" ").map(key => make("kbd", {}, key)), make("span", {}, words)));
  }

  const caption = make("p", { class: "sluice-branch" });
  const second = make("div", { class: "sluice-holder", "data-testid": "sluice-second" });
  const addTwin = () => {
    const svg = model.get("_picture"), [, id] = svg.match(/ id="([^"]+)"/);
    second.innerHTML = svg.replaceAll(id, `${id}-${viewId}-b`);
    keepReadable(second.querySelector("svg"));
    twin = makeAnother();
    twin.bind(second.querySelector("svg"));
    picture.after(caption, second);
  };
  const dropTwin = () => { twin = null; caption.remove(); second.remove(); };
  const firstDifference = () => {
    const { frames } = now(), least = Math.min(frames.length, other.length);
    const text = frame => JSON.stringify(frame.slice(2));
    for (let i = Math.max(0, fork.step); i < least; i++) if (text(frames[i]) !== text(other[i])) return i;
    return frames.length === other.length ? -1 : least;
  };
  const frameOf = at => other[Math.min(at, other.length - 1)];
  const differenceWords = () => (differs < 0 ? "so far both branches are the same" : `they differ from step ${differs} on`);
  const drawChoices = at => {
    const isNow = at === now().frames.length - 1;
    choices.replaceChildren(...((isNow && enabled) || []).map((action, i) => {
      const node = push(`${i < 9 ? `${i + 1} ` : ""}${action}`, `choice-${i}`, () => { stop(); send({ type: "choose", action }); }, i < 9 ? String(i + 1) : "");
      return node;
    }));
    if (!isNow) choices.append(make("span", { class: "sluice-soft" }, "Go to the last frame to choose what comes next, or fork here."));
    else if (!enabled) choices.append(make("span", { class: "sluice-soft" }, "What can happen next is asked of the kernel …"));
    else if (!enabled.length) choices.append(make("span", { class: "sluice-soft" }, "Nothing can happen any more."));
  };

  const keys = { f: () => toggleForm() };
  for (let i = 0; i < 9; i++) keys[String(i + 1)] = () => choices.querySelector(`[data-testid=sluice-choice-${i}]`)?.click();
  let shownAt = -1, isStale = true;

  return {
    keys,
    refuse,
    save,
    hear(content) {
      refuse("");
      enabled = content.enabled;
      isStale = true;
      if (document.activeElement !== seed) seed.value = content.seed;
      if (what.childElementCount === 0) {
        for (const [value, words] of [["buffers", "buffers of each output, at most"], ["credits", "floating buffers of each input, at most"], ...content.tasks.map(task => [`slow:${task}`, `${task} rests, in ms`])]) what.append(make("option", { value }, words));
      }
      fork = content.fork;
      if (!fork) { other = []; differs = -1; dropTwin(); return; }
      other = content.type === "history" ? content.other : [...other, ...content.other];
      if (!twin) addTwin();
      differs = differs < 0 || content.type === "history" ? firstDifference() : differs;
      say(caption, `The other branch, from step ${fork.step} with ${fork.words}: ${differenceWords()}.`);
      put(root, "data-differs", differs);
      put(root, "data-other", other.length);
    },
    draw(at) {
      if (shownAt !== at || isStale) drawChoices(at);
      shownAt = at;
      isStale = false;
      if (twin && other.length) twin.draw(frameOf(at), at);
    },
    told: at => (twin && other.length ? `. The other branch (${fork.words}), ${twin.status(frameOf(at), at)}; ${differenceWords()}` : ""),
    tables: at => (twin && other.length ? twin.tables(frameOf(at), at).map(([name, head, rows]) => [`Other branch: ${name}`, head, rows]) : []),
  };
}
