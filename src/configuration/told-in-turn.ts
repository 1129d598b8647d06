import { orAborted } from '../base/abort.js';

/** What listeners are told, one after the other, until `signal` aborts. */
export async function* toldInTurn<T>(listen: (listener: (news: T) => void) => () => void, signal: AbortSignal): AsyncGenerator<T> {
  const told: T[] = [];
  let wake: () => void = () => undefined;
  const forget = listen((news) => {
    told.push(news);
    wake();
  });
  try {
    while (!signal.aborted) {
      const next = told.shift();
      if (next !== undefined) yield next;
      else await orAborted(new Promise<void>((resolve) => (wake = resolve)), signal).catch(() => undefined);
    }
  } finally {
    forget();
  }
}
