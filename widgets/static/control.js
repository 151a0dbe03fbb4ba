// What one may do to a running job: slow an operator, hold it, change the buffer timeout, swap a part.

const HELD_MS = 60000, EVERY_MS = 80;
// The slider has places, not milliseconds, so that a little and a lot can both be set.
const RESTS_MS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

function controlOf({ model, bar, send, controls }) {
  const { names, rests_ms, timeout_ms, swaps } = model.get("_topology").control;
  const rests = { ...rests_ms }; // by name
  let timer = null, due = null;
  const tell = content => { // the newest value wins, a few times a second
    due = content;
    if (timer === null) { send(due); due = null; timer = setTimeout(() => { timer = null; if (due) tell(due); }, EVERY_MS); }
  };

  const who = make("select", { "aria-label": "Which operator or task", "data-testid": "sluice-slow-who" }, ...names.map(name => make("option", { value: name }, name)));
  who.value = Object.keys(rests)[0] ?? names[0];
  const rest = make("input", { type: "range", min: "0", max: String(RESTS_MS.length - 1), step: "1", value: "0", "aria-label": "Rest after each buffer", "data-testid": "sluice-slow" });
  const says = make("output", {});
  const hold = make("button", { type: "button", "data-testid": "sluice-hold" });
  const words = ms => (ms >= HELD_MS ? "held" : ms ? `${ms} ms` : "full speed");
  const show = () => {
    const ms = rests[who.value] ?? 0;
    if (ms < HELD_MS) rest.value = RESTS_MS.findLastIndex(place => place <= ms);
    put(rest, "aria-valuetext", words(ms));
    say(says, words(ms));
    say(hold, ms >= HELD_MS ? "Let it go" : "Hold it");
    put(hold, "aria-pressed", ms >= HELD_MS);
  };
  const slow = ms => { rests[who.value] = ms; show(); tell({ type: "slow", name: who.value, ms }); };
  rest.addEventListener("input", () => slow(RESTS_MS[+rest.value]));
  hold.addEventListener("click", () => slow((rests[who.value] ?? 0) >= HELD_MS ? RESTS_MS[+rest.value] : HELD_MS));
  who.addEventListener("change", show);

  const parts = [make("label", {}, "Slow ", who), rest, says, hold];
  if (controls.includes("set_buffer_timeout") && timeout_ms !== 0) {
    const options = [1, 10, 100, 1000, -1];
    if (timeout_ms && !options.includes(timeout_ms)) options.unshift(timeout_ms);
    const timeout = make("select", { "aria-label": "Buffer timeout", "data-testid": "sluice-timeout" }, ...options.map(ms => make("option", { value: String(ms) }, ms < 0 ? "never" : `${ms} ms`)));
    timeout.value = String(timeout_ms ?? 100);
    timeout.addEventListener("change", () => send({ type: "set_buffer_timeout", ms: +timeout.value }));
    parts.push(make("label", {}, "Buffer timeout ", timeout));
  }
  for (const name of controls.includes("swap") ? swaps : []) {
    const swap = make("button", { type: "button", "data-testid": "sluice-swap" }, `Swap in: ${name}`);
    swap.addEventListener("click", () => send({ type: "swap", name }));
    parts.push(swap);
  }
  const refusal = make("p", { class: "sluice-notice", role: "alert", hidden: "" });
  const own = make("div", { class: "sluice-control", role: "group", "aria-label": "Change the running job" }, ...parts, refusal);
  own.addEventListener("keydown", event => { if (event.target.tagName !== "BUTTON" || event.key === " ") event.stopPropagation(); });
  bar.after(own);
  show();
  return {
    refuse(reason) { say(refusal, reason); refusal.hidden = !reason; },
    stop: () => clearTimeout(timer),
  };
}
