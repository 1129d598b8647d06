/** What a piece of shared set-up answers: the value, and how to undo it. */
export interface SetUp<T> {
  readonly value: T;
  readonly tearDown: () => Promise<void>;
}

interface Shared {
  readonly setUp: Promise<SetUp<unknown>>;
  users: number;
}

// Vitest loads a global setup file once per project, so module state would not be shared: the process has to
// carry it.
const registry = Symbol.for('nodelease.test.once-per-run');
const carrier = globalThis as { [registry]?: Map<string, Shared> };

/**
 * Runs `create` once in this process for all callers that give the same name, also when module instances
 * differ.
 *
 * @returns the shared value, and a function that gives up the caller's share: the last one tears it down
 */
export async function oncePerRun<T>(
  name: string,
  create: () => Promise<SetUp<T>>,
): Promise<{ value: T; giveUp: () => Promise<void> }> {
  carrier[registry] ??= new Map();
  const shares = carrier[registry];
  const shared = shares.get(name) ?? { setUp: create(), users: 0 };
  shares.set(name, shared);
  shared.users += 1;
  const { value, tearDown } = await shared.setUp;
  return {
    value: value as T,
    giveUp: async () => {
      shared.users -= 1;
      if (shared.users > 0) return;
      shares.delete(name);
      await tearDown();
    },
  };
}
