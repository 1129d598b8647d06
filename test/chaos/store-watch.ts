import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosStore } from './chaos-store.js';
import type { Tenure } from './judge.js';

/** How often every lease object is looked at, in milliseconds. */
const LOOK_EVERY_MS = 500;

/** What a lease object says, as far as it matters here. */
interface Look {
  readonly version: number;
  /** The task that holds the id; undefined for none. */
  readonly holder: string | undefined;
}

/** Looks at the lease objects in the store itself, and notes what must never happen to them. */
export class StoreWatch {
  readonly problems = new Set<string>();
  /** How many times an object was read. */
  looks = 0;
  readonly #latest = new Map<number, Look>();
  readonly #holders = new Map<string, string>();

  constructor(
    private readonly read: ChaosStore['read'],
    private readonly ids: number,
    /** Whether it loses writes: then only what tasks have acted under is judged, elsewhere. */
    private readonly goesBack = false,
  ) {}

  /** Looks again and again until the signal aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.lookAtAll();
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** One look at every object. */
  async lookAtAll(): Promise<void> {
    for (let id = 0; id < this.ids; id += 1) {
      const object = await this.read(id).catch((error: unknown) => {
        this.problems.add(`node id ${id}: could not be read: ${String(error)}`);
        return undefined;
      });
      this.#judge(id, object && { body: object.body, metadata: object.metadata });
    }
  }

  /** The last look, when no task is left: nothing that was ever acted under may be missing. */
  async finish(tenures: readonly Tenure[]): Promise<void> {
    await this.lookAtAll();
    if (this.goesBack) return;
    for (const { nodeId, version, taskId } of tenures) {
      const latest = this.#latest.get(nodeId)?.version ?? 0;
      if (latest < version)
        this.problems.add(
          `node id ${nodeId}: the store says version ${latest}, and version ${version} was acted under`,
        );
      const holder = this.#holders.get(`${nodeId} ${version}`);
      if (holder !== undefined && holder !== taskId) {
        this.problems.add(
          `node id ${nodeId}: version ${version} was held by ${holder} in the store, and ${taskId} acted under it`,
        );
      }
    }
  }

  #judge(id: number, object: { body: string; metadata: Readonly<Record<string, string>> } | undefined): void {
    this.looks += 1;
    const before = this.#latest.get(id);
    if (object === undefined) {
      this.problems.add(`node id ${id}: its lease object is gone`);
      return;
    }
    const look = readLook(object.body);
    if (look === undefined || String(look.version) !== (object.metadata.version ?? '0')) {
      this.problems.add(
        `node id ${id}: its lease object is unreadable: ${object.body} ${JSON.stringify(object.metadata)}`,
      );
      return;
    }
    if (this.goesBack) return;
    this.#latest.set(id, look);
    if (before && look.version < before.version) {
      this.problems.add(`node id ${id}: its version went from ${before.version} down to ${look.version}`);
    }
    if (look.holder === undefined) return;
    const key = `${id} ${look.version}`;
    const holder = this.#holders.get(key) ?? look.holder;
    this.#holders.set(key, holder);
    if (holder !== look.holder)
      this.problems.add(`node id ${id}: version ${look.version} was held by ${holder} and by ${look.holder}`);
  }
}

/** Read without the shipped codec, which is under test. An object without a body was never held. */
function readLook(body: string): Look | undefined {
  if (body === '') return { version: 0, holder: undefined };
  try {
    const { version, taskId } = JSON.parse(body) as { version?: unknown; taskId?: unknown };
    if (!Number.isSafeInteger(version)) return undefined;
    return {
      version: version as number,
      holder: typeof taskId === 'string' && taskId !== '' ? taskId : undefined,
    };
  } catch {
    return undefined;
  }
}
