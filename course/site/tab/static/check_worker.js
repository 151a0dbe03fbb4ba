// One run of a check: core Pyodide and the engine without its reference parts; no course and no answers. The page ends it.
const base = new URL("./pyodide/", location.href).href;
const textOf = async name => (await fetch(new URL(name, location.href))).text();
let run;

const prepare = async job => {
  const begun = performance.now();
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const [archive, child, rounds, atWork] = await Promise.all([
    fetch(new URL("./engine.zip", location.href)).then(got => got.arrayBuffer()), ...["./child.py", "./rounds.py", "./at_work.py"].map(textOf),
  ]);
  const python = await loadPyodide({ indexURL: base, jsglobals: {}, env: { HOME: "/home/check" } });
  python.unpackArchive(archive, "zip", { extractDir: "/course" });
  const own = python.toPy({ __name__: "at_work" });
  python.runPython(atWork, { globals: own, filename: "<at_work>" });
  run = own.get("get_ready")(job, JSON.stringify({ child, rounds }), say => postMessage({ say }));
  // From here on nothing is fetched: what a check keeps apart lies beside this file.
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "Worker", "indexedDB", "caches", "importScripts"]) {
    Object.defineProperty(self, name, { value: undefined, configurable: false, writable: false });
  }
  postMessage({ ready: performance.now() - begun });
};

const act = {
  prepare: ({ job }) => prepare(job),
  run: ({ order }) => { postMessage({ started: true }); run(order); postMessage({ ended: true }); },
};
let last = Promise.resolve();
onmessage = ({ data }) => {
  last = last.then(() => act[data.act](data)).catch(error => postMessage({ trouble: String(error).slice(-1500) }));
};
