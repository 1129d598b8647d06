interface Fan {
  readonly callbacks: Set<() => void>;
  readonly stop: () => void;
}

const fans = new WeakMap<AbortSignal, Fan>();

/**
 * Calls `callback` when `signal` aborts, unless the returned function is called before. However many wait for one signal, it has one
 * listener: with more than ten the runtime warns of a leak.
 *
 * @param signal not aborted yet
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const fan = fans.get(signal) ?? spread(signal);
  // Each gets an identity of its own: the same function may be given twice.
  const own = () => callback();
  fan.callbacks.add(own);
  return () => {
    if (fan.callbacks.delete(own) && fan.callbacks.size === 0) fan.stop();
  };
}

function spread(signal: AbortSignal): Fan {
  const callbacks = new Set<() => void>();
  const listener = () => {
    fans.delete(signal);
    for (const callback of callbacks) callback();
  };
  const fan = {
    callbacks,
    stop: () => {
      fans.delete(signal);
      signal.removeEventListener('abort', listener);
    },
  };
  signal.addEventListener('abort', listener, { once: true });
  fans.set(signal, fan);
  return fan;
}
