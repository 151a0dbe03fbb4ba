// The ribbon: after n copies everything of a later copy is hidden, and the queue stands as it stood then.

function ribbonView() {
  let dated = [], lanes = [];
  return {
    kind: "ribbon",
    bind(svg) {
      dated = [...svg.querySelectorAll("[data-step]")].map(g => ({ g, step: +g.dataset.step, until: +(g.dataset.until ?? Infinity) }));
      lanes = [...svg.querySelectorAll("[data-lane]")].map(g => ({
        backlog: g.querySelector("[data-field=backlog]"),
        nothing: g.querySelector("[data-field=nothing]"),
        places: [...g.querySelectorAll("[data-place]")].map(p => ({ p, place: +p.dataset.place, words: p.querySelector("[data-field=place]"), slot: p.querySelector(".slot"), fills: [p.querySelector(".level"), p.querySelector(".mesh")] })),
      }));
    },
    seq: (frame, at) => at,
    draw(frame, at) {
      for (const { g, step, until } of dated) { put(g, "data-later", step >= at || until < at ? 1 : 0); put(g, "data-now", step === at - 1 && !g.dataset.buffer ? 1 : 0); }
      frame.lanes.forEach((lane, i) => {
        say(lanes[i].backlog, `backlog ${lane.backlog}`);
        put(lanes[i].nothing, "data-later", lane.queue.length ? 1 : 0);
        for (const { p, place, words, slot, fills } of lanes[i].places) {
          const entry = lane.queue[place];
          put(p, "data-later", entry ? 0 : 1);
          if (!entry) continue;
          const [share, isFinished, text] = entry;
          put(p, "data-state", isFinished ? "finished" : "open");
          say(words, `${place || "head"}: ${text}`);
          for (const shape of fills) put(shape, "width", +slot.getAttribute("width") * share);
        }
      });
    },
    status: frame => frame.status,
    tables: frame => frame.tables,
  };
}

export default { render: ({ model, el }) => play(model, el, ribbonView()) };
