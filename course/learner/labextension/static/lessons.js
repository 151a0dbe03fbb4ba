// The lessons in JupyterLab: their titles at the left, two cards in the launcher, a command each in the palette.
//
// JupyterLab takes an extension that is built already as a container of webpack's module federation: `init` is given
// what all extensions share, `get` gives the extension. Two functions need no bundler, so nobody has to build this one.
(() => {
  let shared;
  const moduleOf = async name => (await Object.values(shared[name])[0].get())();

  const STYLE = `
    #sluice-lessons { overflow-y: auto; background: var(--jp-layout-color1); color: var(--jp-ui-font-color1); }
    #sluice-lessons h2 { margin: 12px 12px 6px; font-size: var(--jp-ui-font-size1); font-weight: 600; }
    #sluice-lessons ol { margin: 0; padding: 0; list-style: none; }
    #sluice-lessons button {
      display: grid; grid-template-columns: 2.2em 1fr auto; gap: 2px 6px; width: 100%; padding: 6px 12px; border: 0;
      background: none; color: inherit; font: inherit; text-align: left; cursor: pointer;
    }
    #sluice-lessons button:hover { background: var(--jp-layout-color2); }
    #sluice-lessons button:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: -2px; }
    #sluice-lessons .sluice-next { box-shadow: inset 4px 0 var(--jp-brand-color1); background: var(--jp-layout-color2); }
    #sluice-lessons .sluice-next em { grid-column: 2 / 4; font-style: normal; font-weight: 600; }
    #sluice-lessons small { font-size: inherit; color: var(--jp-ui-font-color2); white-space: nowrap; }`;

  const made = (tag, attributes, ...children) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...children);
    return element;
  };

  function listOf({ heading, start, lessons, next }, open) {
    const entry = ({ file, number, title, marks, says }) => {
      const isNext = next && file === next.file;
      const parts = [made("small", {}, number), made("span", {}, title), made("small", {}, marks)];
      if (isNext) parts.push(made("em", {}, next.says));
      const button = made("button", { type: "button", title: says, className: isNext ? "sluice-next" : "" }, ...parts);
      button.addEventListener("click", () => open(file));
      return made("li", {}, button);
    };
    return [
      made("style", {}, STYLE),
      made("h2", {}, heading),
      made("ol", {}, entry({ file: start.file, number: "", title: start.title, marks: "", says: start.says }), ...lessons.map(entry)),
    ];
  }

  async function plugin() {
    const [{ ILauncher }, { ICommandPalette }, { PageConfig }, { Widget }, { LabIcon }] = await Promise.all(
      ["@jupyterlab/launcher", "@jupyterlab/apputils", "@jupyterlab/coreutils", "@lumino/widgets", "@jupyterlab/ui-components"].map(moduleOf),
    );
    const svgstr = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">'
      + '<rect x="2" y="8" width="5" height="8"/><rect x="8.5" y="8" width="5" height="8"/><rect x="15" y="4" width="2.5" height="16"/><path d="M19 12h4"/><rect x="19" y="11" width="4" height="2"/></g></svg>';

    function activate(app, launcher, palette) {
      const known = JSON.parse(PageConfig.getOption("sluiceLessons") || "null");
      if (!known) return; // a JupyterLab that was not started by `sluice lab`
      const icon = new LabIcon({ name: "sluice:lessons", svgstr });
      const open = path => app.commands.execute("docmanager:open", { path });

      const widget = new Widget();
      widget.id = "sluice-lessons";
      widget.title.icon = icon;
      widget.title.caption = known.heading;
      widget.node.setAttribute("role", "navigation");
      widget.node.setAttribute("aria-label", known.heading);
      widget.node.append(...listOf(known, open));
      app.shell.add(widget, "left", { rank: 10 });
      app.restored.then(() => app.shell.restored).then(layout => layout?.fresh && app.shell.activateById(widget.id));

      const command = (id, label, caption, file) => {
        app.commands.addCommand(id, { label, caption, icon, execute: () => open(file) });
        palette?.addItem({ command: id, category: "Sluice" });
        return id;
      };
      const cards = [command("sluice:start", known.start.title, known.start.says, known.start.file)];
      if (known.next) cards.push(command("sluice:next", known.next.card, known.next.says, known.next.file));
      for (const { number, title, file, says } of known.lessons) command(`sluice:${number}`, `${number} ${title}`, says, file);
      cards.forEach((each, rank) => launcher?.add({ command: each, category: "Sluice", rank }));
    }

    return { id: "sluice-lessons:plugin", autoStart: true, optional: [ILauncher, ICommandPalette], activate };
  }

  (window._JUPYTERLAB ??= {})["sluice-lessons"] = {
    init: scope => { shared = scope; },
    get: async () => { const given = await plugin(); return () => ({ __esModule: true, default: given }); },
  };
})();
