// A check: the judge says which run it needs, a worker of its own makes it, and the judge is asked again.

// So long a run may say nothing; on a slow machine, which shows while the worker gets ready, longer.
const SILENCE_MS = 10_000, AS_GETTING_READY = 3;

export function child(job, base = "./") {
  const worker = new Worker(`${base}check_worker.js`, { type: "module" });
  const waiting = { heard: null, tookMs: 0 };
  worker.onmessage = ({ data }) => {
    if (data.ready) waiting.tookMs = data.ready;
    else waiting.heard?.(data);
  };
  worker.onerror = event => waiting.heard?.({ trouble: event.message });
  worker.postMessage({ act: "prepare", job });
  return { worker, waiting };
}

// What a run says, and whether its time was up.
export const run = ({ worker, waiting }, order) => new Promise((done, fail) => {
  let lines = "", clock, started = false;
  const end = isOver => { clearTimeout(clock); worker.terminate(); done([lines, isOver]); };
  const wind = () => { clearTimeout(clock); clock = setTimeout(() => end(true), SILENCE_MS + AS_GETTING_READY * waiting.tookMs); };
  waiting.heard = data => {
    if (data.started) { started = true; wind(); }
    else if (data.say) { lines += data.say; wind(); }
    else if (data.ended || started) end(false); // code that has ended its own worker has said what it had to say
    else { worker.terminate(); fail(new Error(`the check could not start: ${data.trouble}`)); }
  };
  worker.postMessage({ act: "run", order });
});

export function checker(ask) {
  let spare = null;

  const take = (exercise, job) => {
    if (spare && spare.exercise !== exercise) { spare.worker.terminate(); spare = null; }
    const taken = spare ?? child(job);
    spare = null;
    return taken;
  };

  return {
    async check(exercise, source) {
      let answer = await ask("check", exercise, source);
      if (!("order" in answer)) return answer;
      const job = JSON.stringify(await ask("job", exercise));
      while ("order" in answer) {
        const taken = take(exercise, job);
        spare = { exercise, ...child(job) }; // the next one gets ready meanwhile
        answer = await ask("ran", ...await run(taken, answer.order));
      }
      return answer;
    },
  };
}
