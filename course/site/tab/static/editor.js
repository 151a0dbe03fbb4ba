// A field for Python: numbers of lines, Tab and Shift+Tab by four columns, and a new line as far in as the last.
// Escape gives the next Tab back to the browser, so that a keyboard gets out.
const IN = "    ";

export function editor(parent, label, onChange, onRun) {
  const field = document.createElement("textarea"), gutter = document.createElement("pre");
  Object.assign(field, { spellcheck: false, autocapitalize: "off", autocomplete: "off", wrap: "off", rows: 6 });
  field.setAttribute("aria-label", label);
  gutter.setAttribute("aria-hidden", "true");
  parent.classList.add("editor");
  parent.replaceChildren(gutter, field);
  let leaves = false;

  const number = () => {
    const lines = field.value.split("\n").length;
    gutter.textContent = Array.from({ length: lines }, (_, line) => line + 1).join("\n");
    field.rows = Math.min(Math.max(lines + 1, 6), 32);
    gutter.scrollTop = field.scrollTop;
  };
  // As if typed, so that it can be undone.
  const type = text => { if (!document.execCommand("insertText", false, text)) field.setRangeText(text, field.selectionStart, field.selectionEnd, "end"); };
  const lineStart = at => field.value.lastIndexOf("\n", at - 1) + 1;

  const shift = back => {
    const { selectionStart: from, selectionEnd: to, value } = field;
    if (from === to && !back) { type(IN.slice((from - lineStart(from)) % IN.length)); return; }
    const start = lineStart(from), old = value.slice(start, to);
    const moved = old.split("\n").map(line => (back ? line.replace(/^ {1,4}/, "") : line && IN + line)).join("\n");
    if (moved === old) return;
    field.setSelectionRange(start, to);
    moved ? type(moved) : document.execCommand("delete");
    from === to ? field.setSelectionRange(Math.max(start, from + moved.length - old.length), start + moved.length) : field.setSelectionRange(start, start + moved.length);
  };

  field.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey)) onRun();
    else if (event.key === "Enter" && !event.isComposing) {
      const before = field.value.slice(lineStart(field.selectionStart), field.selectionStart);
      type(`\n${before.match(/^ */)[0]}${/:\s*(#.*)?$/.test(before) ? IN : ""}`);
    } else if (event.key === "Tab" && !leaves && !event.ctrlKey && !event.altKey) shift(event.shiftKey);
    else { leaves = event.key === "Escape" || (leaves && event.key === "Shift"); return; }
    event.preventDefault();
  });
  field.addEventListener("input", () => { number(); onChange(field.value); });
  field.addEventListener("scroll", () => { gutter.scrollTop = field.scrollTop; });

  number();
  return {
    get text() { return field.value; },
    set text(value) { field.value = value; number(); },
    goTo(line) {
      const at = field.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1);
      field.focus();
      field.setSelectionRange(at, at);
    },
  };
}
