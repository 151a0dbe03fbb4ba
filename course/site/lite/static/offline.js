// The whole folder once, then without a network. `SLUICE_NAME` and `SLUICE_FILES` are put before this when it is made,
// and JupyterLite's own worker stands behind it: what is not one of the files is left to that.
const sluiceRoot = new URL("./", self.location.href);
const sluiceAddresses = new Map(SLUICE_FILES.map(name => [new URL(name, sluiceRoot).pathname, name]));
let sluiceFilling = null;

// As the page needs it, and the rest when the page has come so far that it asks a kernel for something.
const sluiceKept = async path => {
  const cache = await caches.open(SLUICE_NAME);
  const found = await cache.match(path);
  if (found) return found;
  const got = await fetch(path);
  if (got.ok) await cache.put(path, got.clone());
  return got;
};
const sluiceFill = async () => {
  const cache = await caches.open(SLUICE_NAME);
  const has = new Set((await cache.keys()).map(({ url }) => new URL(url).pathname));
  for (const path of sluiceAddresses.keys()) if (!has.has(path)) await sluiceKept(path);
  for (const client of await self.clients.matchAll()) client.postMessage({ sluice: "offline" });
};

self.addEventListener("activate", event => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("sluice-lite-") && name !== SLUICE_NAME) await caches.delete(name);
})()));
self.addEventListener("fetch", event => {
  const { pathname, origin } = new URL(event.request.url);
  const path = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
  if (event.request.method !== "GET" || origin !== self.location.origin || !sluiceAddresses.has(path)) return;
  event.stopImmediatePropagation();
  event.respondWith(sluiceKept(path));
  if (path.endsWith("/pyodide.asm.wasm")) event.waitUntil(sluiceFilling ??= sluiceFill().catch(() => { sluiceFilling = null; }));
});
