// What one may do to the members of a simulated cluster, and how far it goes on at a click.

const FAULTS = { crash: "Kill", pause: "Pause", resume: "Let go on", revive: "Revive" };

function membersOf({ bar, help, send, stop }) {
  const rows = make("div", { class: "sluice-moves", role: "group", "aria-label": "Kill, pause and revive members" });
  const push = (words, id, act, keys) => {
    const node = make("button", { type: "button", "data-testid": `sluice-${id}`, ...(keys ? { "aria-keyshortcuts": keys } : {}) }, words);
    node.addEventListener("click", act);
    return node;
  };
  const change = () => { stop(); send({ type: "change" }); };
  const wait = () => { stop(); send({ type: "wait" }); };
  const acts = make("div", { class: "sluice-acts" }, push("To the next change (N)", "change", change, "N"), push("100 ms on (S)", "wait", wait, "S"));
  const refusal = make("p", { class: "sluice-notice", role: "alert", hidden: "" });
  for (const [key, words] of [["N", "on to the next change"], ["S", "on by 100 ms"]]) help.append(make("li", {}, make("kbd", {}, key), make("span", {}, words)));
  bar.after(make("div", { class: "sluice-stepper", "data-testid": "sluice-members" }, acts, rows, refusal));
  const whose = id => id.replace(/^sluice-[a-z]+/, ""); // whatever the button does
  const found = isIt => [...rows.querySelectorAll("button")].find(node => isIt(node.dataset.testid));
  return {
    keys: { n: change, s: wait },
    refuse(words) { say(refusal, words); refusal.hidden = !words; },
    hear(members) {
      const held = document.activeElement?.dataset?.testid; // its button may be made anew
      refusal.hidden = true;
      rows.replaceChildren(...members.map(([address, actions]) => make("span", { class: "sluice-member", role: "group", "aria-label": address }, make("span", {}, address),
        ...actions.map(([kind, action]) => {
          const node = push(FAULTS[kind], `${kind}-${address}`, () => { stop(); send({ type: "member", action }); });
          put(node, "aria-label", `${FAULTS[kind]} ${address}`);
          return node;
        }))));
      if (held) (found(id => id === held) ?? found(id => whose(id) === whose(held)))?.focus();
    },
  };
}
