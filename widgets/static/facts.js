// A drawing that moves by facts: each part with `data-fact` follows one value of the frame. See widgets/facts.py.

const FOLLOW = {
  words: (node, value) => say(node, value === "" ? "" : (node.dataset.before ?? "") + value + (node.dataset.after ?? "")),
  state: (node, value) => put(node, "data-state", value < 0 ? "absent" : node.dataset.states.split(" ")[value]),
  level: (node, value) => {
    const { bottom, tall, most } = node.dataset, level = tall * Math.min(1, value / most);
    put(node, "y", bottom - level);
    put(node, "height", level);
  },
  length: (node, value) => put(node, "width", node.dataset.full * Math.min(1, value / node.dataset.most)),
  place: (node, value) => {
    const { columns, dx, dy } = node.dataset;
    put(node, "data-state", value < 0 ? "absent" : "here");
    if (value >= 0) put(node, "transform", `translate(${(value % columns) * dx} ${Math.floor(value / columns) * dy})`);
  },
  curve: (node, value) => {
    const x = +node.dataset.x, step = +node.dataset.step, bottom = +node.dataset.bottom;
    let path = "", isDown = false;
    value.split(" ").forEach((height, place) => {
      if (height !== "-" && height !== "") path += `${isDown ? "L" : "M"}${x + place * step} ${bottom - height}`;
      isDown = height !== "-";
    });
    put(node, "d", path || "M0 0");
  },
};
const AHEAD = 2; // before the facts come the number of steps and the time

function factsView(model) {
  const { kind, status, tables } = model.get("_topology");
  let parts = [];
  return {
    kind,
    bind(svg) {
      parts = [...svg.querySelectorAll("[data-fact]")].map(node => ({ node, place: AHEAD + Number(node.dataset.fact), follow: FOLLOW[node.dataset.as], shown: undefined }));
    },
    expand({ first, changes }) {
      const frames = [first];
      for (const change of changes) {
        const frame = frames.at(-1).slice();
        for (let i = 0; i < change.length; i += 2) frame[change[i]] = change[i + 1];
        frames.push(frame);
      }
      return frames;
    },
    seq: frame => frame[0],
    draw(frame, _at, isQuick) {
      for (const part of parts) {
        if (isQuick && part.follow === FOLLOW.words) continue;
        const value = frame[part.place];
        if (value !== part.shown) { part.follow(part.node, value); part.shown = value; }
      }
    },
    status: frame => frame[AHEAD + status],
    tables: frame => {
      const text = cell => { if (!Array.isArray(cell)) return cell; const [fact, ...states] = cell, value = frame[AHEAD + fact]; return states.length ? states[value] : value; };
      return tables.map(([caption, head, rows]) => [caption, head, rows.map(row => row.map(text))]);
    },
  };
}

export default { render: ({ model, el }) => play(model, el, factsView(model), () => factsView(model)) };
