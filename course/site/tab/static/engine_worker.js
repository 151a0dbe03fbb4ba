// The engine, the judge and the list of progress: core Pyodide and one archive. Everything is asked by messages.
const base = new URL("./pyodide/", location.href).href;
let ask;

const ready = (async () => {
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const archive = fetch(new URL("./course.zip", location.href)).then(got => got.arrayBuffer());
  const python = await loadPyodide({ indexURL: base, env: { HOME: "/home/learner", SLUICE_WORK: "/home/learner/work", SLUICE_LANGUAGE: self.name } });
  python.unpackArchive(await archive, "zip", { extractDir: "/course" });
  python.runPython("import sys; sys.path.insert(0, '/course'); from course.site.tab import page, stand_in");
  const { page, stand_in: standIn } = Object.fromEntries(["page", "stand_in"].map(name => [name, python.globals.get(name)]));
  standIn.post.append((view, content) => postMessage({ view, content: JSON.parse(content) }));
  ask = (name, given) => JSON.parse(page.answer(name, JSON.stringify(given)));
})();

onmessage = async ({ data: { id, name, given } }) => {
  try {
    await ready;
    postMessage({ id, ...ask(name, given) });
  } catch (error) {
    postMessage({ id, error: String(error).slice(-1500) });
  }
};
