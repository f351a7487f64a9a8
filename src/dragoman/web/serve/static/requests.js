// Asks the server. Whoever is told to wait waits, and everybody with him: a busy server gets no second queue.

const MAX_TRIES = 6, MAX_WAIT_SECONDS = 60, UNREACHED_SECONDS = 3;
const KEY = "dragoman-api-key";
let key = "";
try { key = sessionStorage.getItem(KEY) ?? ""; } catch { /* a browser may forbid storage */ }
let notBefore = 0;

// An answer that is none; `message` is a sentence for the reader.
export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function useKey(given) {
  key = given;
  try { sessionStorage.setItem(KEY, given); } catch { /* then it lasts as long as the page */ }
}

export const hasKey = () => key !== "";

export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(resolve, Math.max(0, milliseconds));
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

export async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

// `onWait(seconds, why)` is told of every wait; `signal` ends asking and waiting alike.
export async function ask(path, body, { signal, onWait } = {}) {
  for (let tries = 1; ; tries += 1) {
    if (notBefore > Date.now()) await pause(notBefore - Date.now(), signal);
    const answer = await send(path, body, signal);
    if (answer?.ok) return answer.json();
    const isTransient = !answer || answer.status === 429 || answer.status === 503;
    if (!isTransient || tries === MAX_TRIES) throw await refusal(answer);
    const seconds = answer ? secondsToWait(answer) : UNREACHED_SECONDS;
    notBefore = Date.now() + 1000 * seconds;
    onWait?.(seconds, answer ? "The server is busy" : "The server cannot be reached");
  }
}

async function send(path, body, signal) {
  try {
    return await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(key ? { ...body, api_key: key } : body),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    return null; // nobody answered
  }
}

function secondsToWait(answer) {
  const said = Number(answer.headers.get("Retry-After"));
  return Number.isFinite(said) && said > 0 ? Math.min(said, MAX_WAIT_SECONDS) : 2;
}

async function refusal(answer) {
  if (!answer) return new Refusal("The server cannot be reached.", 0);
  let said = "";
  try { said = (await answer.json()).error ?? ""; } catch { /* a proxy may answer with a page */ }
  if (answer.status === 403) return new Refusal(key ? "The server does not accept this API key." : "This server needs an API key.", 403);
  return new Refusal(said ? asSentence(said) : `The server answered with an error (${answer.status}).`, answer.status);
}

function asSentence(text) {
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
