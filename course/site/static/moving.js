// Each still of a recorded view becomes the view itself when it comes near the screen: its own module, without a kernel.
// No module, and data from a script: a page that is opened from a disk may load neither modules nor data.
(() => {
  const { views, texts } = window.sluiceViews;

  // What a view asks of its model; there is nobody behind it to be told anything.
  const modelOf = state => ({
    get: name => state[name], set(name, value) { state[name] = value; }, save_changes() {}, on() {}, off() {}, send() {},
  });

  const modules = new Map();
  const moduleOf = name => {
    if (!modules.has(name)) {
      modules.set(name, import(URL.createObjectURL(new Blob([texts[name]], { type: "text/javascript" }))));
    }
    return modules.get(name);
  };

  const wake = async frame => {
    const { state, module, style } = views[frame.dataset.view];
    const { default: view } = await moduleOf(module);
    const holder = document.createElement("div"), css = document.createElement("style");
    css.textContent = texts[style];
    await view.render({ model: modelOf({ ...state }), el: holder });
    frame.replaceChildren(css, holder); // only now: a view that fails leaves its still
    frame.dataset.moves = "";
  };

  // The page's theme, as JupyterLab would say it to a view.
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    const { theme } = document.body.dataset;
    const dark = theme === "dark" || (theme !== "light" && system.matches);
    document.documentElement.dataset.jpThemeLight = String(!dark);
  };
  system.addEventListener("change", follow);
  new MutationObserver(follow).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
  follow();

  const near = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      wake(target).catch(error => console.warn("this picture stays still:", error));
    }
  }, { rootMargin: "300px" });
  for (const frame of document.querySelectorAll("[data-view]")) if (frame.dataset.view in views) near.observe(frame);
})();
