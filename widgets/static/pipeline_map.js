// The pipeline map: a frame (see widgets/frames.py) becomes attributes, levels and words of the drawing.

const PROGRESS = ["made", "idle", "backpressured", "done", "lost"];
const WORD = { made: "moving", idle: "idle", backpressured: "backpressured", done: "done", lost: "lost" };
const SYMBOL = { made: "▶", idle: "○", backpressured: "▲", done: "✓", lost: "✗" };
const watermarkText = w => (w === "none" ? "none yet" : w === "end" ? "end" : `${w} ms`);
const stepWords = frame => `step ${frame[0]}${frame[3] ? ` (${frame[3].replace(/^step /, "")})` : ""}`;
const queueOf = c => {
  const queue = [];
  for (let i = 4; i < c.length; i += 4) queue.push({ segment: c[i], written: c[i + 1], unread: c[i + 2], finished: !!(c[i + 3] & 1), event: !!(c[i + 3] & 2) });
  return queue;
};
const marksOf = c => [c[1] & 1 ? "flush" : "", c[1] & 2 ? "blocked" : "", c[1] & 4 ? "ended" : ""].filter(Boolean);

function pipelineView(model) {
  const topology = model.get("_topology");
  const size = topology.segment_size_bytes;
  let parts = null;

  const bind = svg => {
    const field = (g, name) => g.querySelector(`[data-field=${name}]`);
    // By number; of a large job some have no place in the picture.
    const numbered = (name, part) => {
      const found = [];
      for (const g of svg.querySelectorAll(`[data-${name}]`)) found[g.dataset[name]] = part(g);
      return found;
    };
    parts = {
      moment: svg.querySelector("[data-field=moment]"),
      tasks: numbered("task", g => ({ g, word: field(g, "word"), flow: field(g, "flow"), watermark: field(g, "watermark") })),
      outputs: numbered("out", g => ({ words: field(g, "pool"), squares: [...g.querySelectorAll("[data-square]")] })),
      channels: numbered("ch", g => ({
        g, words: field(g, "channel"), more: field(g, "more"),
        slots: [...g.querySelectorAll("[data-slot]")].map(s => ({ s, name: s.querySelector("title"), level: s.querySelector(".level"), mesh: s.querySelector(".mesh"), bottom: +s.dataset.bottom, tall: +s.dataset.tall })),
      })),
    };
  };

  const drawTask = (part, [progress, into, out, watermark]) => {
    const word = PROGRESS[progress];
    put(part.g, "data-progress", word === "lost" ? "idle" : word);
    say(part.word, `${SYMBOL[word]} ${WORD[word]}`);
    say(part.flow, `records in ${into} · out ${out}`);
    say(part.watermark, `watermark ${watermarkText(watermark)}`);
  };
  const drawOutput = (part, [limit, , home, queued, reading]) => {
    const more = Math.max(0, limit - part.squares.length);
    say(part.words, `${home} home · ${queued} queued · ${reading} read${more ? ` · +${more} □` : ""}`);
    part.squares.forEach((g, i) => put(g, "data-state",
      i < home ? "home" : i < home + queued ? "queued" : i < home + queued + reading ? "reading" : i < limit ? "away" : "absent"));
  };
  const fillWord = e => (!e ? "free place" : e.event ? `event, ${e.written} B` : `${e.written} of ${size} B, ${e.finished ? "finished" : "open"}`);
  const drawChannel = (part, c) => {
    const queue = queueOf(c);
    put(part.g, "data-backlog", c[0]);
    put(part.g, "data-queued", queue.length);
    put(part.g, "data-ended", c[1] & 4 ? 1 : 0);
    say(part.words, [`backlog ${c[0]}`, `sent ${c[3]} B`, ...marksOf(c)].join(" · "));
    say(part.more, queue.length > part.slots.length ? `+${queue.length - part.slots.length}` : "");
    part.slots.forEach((slot, i) => {
      const entry = queue[i];
      put(slot.s, "data-state", !entry ? "none" : entry.event ? "event" : entry.finished ? "finished" : "open");
      say(slot.name, fillWord(entry));
      const level = entry && !entry.event ? slot.tall * Math.min(1, entry.written / size) : 0;
      for (const shape of [slot.level, slot.mesh]) { put(shape, "y", slot.bottom - level); put(shape, "height", level); }
    });
  };

  return {
    kind: "map",
    bind,
    seq: frame => frame[0],
    draw(frame) {
      say(parts.moment, `${stepWords(frame)} · ${frame[2]} of ${topology.num_total_segments} segments of ${size} B free`);
      parts.tasks.forEach((part, i) => drawTask(part, frame[4][i]));
      parts.outputs.forEach((part, i) => drawOutput(part, frame[5][i]));
      parts.channels.forEach((part, i) => drawChannel(part, frame[6][i]));
    },
    // The same sentence as widgets/text.py, pipeline_status; a test compares them.
    status(frame) {
      const counts = PROGRESS.map((word, i) => [frame[4].filter(task => task[0] === i).length, WORD[word]]).filter(([n]) => n);
      const sum = i => frame[5].reduce((total, output) => total + output[i], 0);
      return `${stepWords(frame)}: tasks ${counts.map(([n, w]) => `${n} ${w}`).join(", ")}; ` +
        `buffers ${sum(3)} queued, ${sum(4)} being read, ${sum(2)} home; ${frame[2]} of ${topology.num_total_segments} segments free`;
    },
    tables(frame) {
      return [
        ["Tasks", ["task", "progress", "records in", "records out", "watermark"],
          frame[4].map((t, i) => [topology.tasks[i].name, WORD[PROGRESS[t[0]]], t[1], t[2], watermarkText(t[3])])],
        ["Outputs, in buffers", ["output", "home", "queued", "being read", "limit"],
          frame[5].map((o, i) => [topology.outputs[i].name, o[2], o[3], o[4], o[0]])],
        ["Channels", ["channel", "to", "backlog (buffers)", "sent (bytes)", "marks", "queue, head first"],
          frame[6].map((c, i) => [topology.channels[i].name, topology.tasks[topology.channels[i].to_task]?.name ?? "nobody", c[0], c[3], marksOf(c).join(", "), queueOf(c).map(fillWord).join(" | ")])],
      ];
    },
  };
}

export default { render: ({ model, el }) => play(model, el, pipelineView(model), () => pipelineView(model)) };
