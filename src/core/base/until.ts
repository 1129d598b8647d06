/**
 * Waits for a state: settles as `bound` does, which gets the promise of the first value but undefined of `find`.
 *
 * @param subscribe calls a listener at each change, until the returned function is called
 * @param find is asked now, and at each change until it has found one. Must not throw
 * @param bound ends the wait sooner, or returns its argument
 */
export async function until<T, R>(
  subscribe: (listener: () => void) => () => void,
  find: () => T | undefined,
  bound: (found: Promise<T>) => Promise<R>,
): Promise<R> {
  let forget: () => void = () => undefined;
  const found = new Promise<T>((resolve) => {
    const check = () => {
      const value = find();
      if (value === undefined) return;
      forget();
      resolve(value);
    };
    forget = subscribe(check);
    check();
  });
  try {
    return await bound(found);
  } finally {
    forget();
  }
}
