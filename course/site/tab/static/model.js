// A view without a kernel: what the modules of `widgets/static` ask of their model, and the engine behind it.
const modules = new Map();

export async function mount(holder, { traits, module, style }, send) {
  if (!modules.has(module)) modules.set(module, import(URL.createObjectURL(new Blob([module], { type: "text/javascript" }))));
  const { default: view } = await modules.get(module);
  const values = new Map(Object.entries(traits)), listeners = new Map();
  const of = event => listeners.get(event) ?? [];
  const model = {
    get: name => values.get(name),
    set(name, value) { values.set(name, value); },
    save_changes() {},
    on(event, listener) { listeners.set(event, [...of(event), listener]); },
    off(event, listener) { listeners.set(event, of(event).filter(each => each !== listener)); },
    send,
  };
  const css = document.createElement("style"), drawing = document.createElement("div");
  css.textContent = style;
  holder.replaceChildren(css, drawing);
  const end = await view.render({ model, el: drawing });
  return { hear: content => of("msg:custom").forEach(listener => listener(content)), end: () => end?.() };
}
