// The page around the view: asks for the key once, then looks every second. The key is sent in a body and kept nowhere.
import { classView } from "/static/class_view.js";

const LOOK_MS = 1000;
const by = id => document.getElementById(id);
const room = by("room"), door = by("door"), foot = by("foot"), wrong = by("wrong"), key = by("key");
let timer = null;

const ask = (method, path, body) => fetch(path, { method, ...(body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }) });
const sentence = async answer => { try { return (await answer.json()).error ?? "Something went wrong."; } catch { return `The class answered ${answer.status}.`; } };

const view = classView(async (order, answer) => {
  try {
    const answered = await ask("POST", "/api/actions", order);
    answer(answered.ok ? (await answered.json()).said : await sentence(answered));
    look();
  } catch { answer("The class does not answer; nothing was decided."); }
});
room.append(view.root);

const show = isOpen => {
  room.hidden = foot.hidden = !isOpen;
  door.hidden = isOpen;
  if (!isOpen) key.focus();
};

async function look() {
  clearTimeout(timer);
  let again = true;
  try {
    const answer = await ask("GET", "/api/class");
    if (answer.ok) {
      show(true);
      const model = await answer.json();
      view.update(model);
      document.title = `${model.title} · Sluice class`;
    } else if (answer.status === 401 || answer.status === 403) {
      if (answer.status === 403 || !room.hidden) wrong.textContent = await sentence(answer); // it was open: say why no more
      show(again = false);
    } else view.tell(await sentence(answer));
  } catch { view.tell("The class does not answer. It is asked again; learners go on, and nothing of theirs is lost."); }
  if (again) timer = setTimeout(look, LOOK_MS);
}

door.addEventListener("submit", async event => {
  event.preventDefault();
  wrong.textContent = "";
  try {
    const answer = await ask("POST", "/api/login", { key: key.value });
    key.value = "";
    if (answer.ok) look(); else wrong.textContent = await sentence(answer);
  } catch { wrong.textContent = "The class does not answer."; }
});
by("leave").addEventListener("click", async () => { clearTimeout(timer); await ask("POST", "/api/logout", {}); show(false); });
by("size").addEventListener("input", event => document.documentElement.style.setProperty("--sluice-size", `${event.target.value}px`));
fetch("/api/session").then(answer => answer.json()).then(found => (found.open ? look() : show(false))).catch(look);
