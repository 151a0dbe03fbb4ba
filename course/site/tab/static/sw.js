// The page once, then without a network. `NAME` and `FILES` are put before this when the page is made.
self.addEventListener("install", event => {
  self.skipWaiting();
  event.waitUntil(caches.open(NAME).then(cache => cache.addAll(FILES)));
});
self.addEventListener("activate", event => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith("sluice-") && name !== NAME) await caches.delete(name);
  await self.clients.claim();
})()));
self.addEventListener("fetch", event => {
  if (event.request.method !== "GET") return;
  event.respondWith(caches.open(NAME).then(async cache => (await cache.match(event.request, { ignoreSearch: true })) ?? fetch(event.request)));
});
