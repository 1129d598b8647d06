import { withTimeout } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type { ServiceEntry, ServiceTree, ServiceTreeStatus } from '../monitor/service-tree.js';
import { HEARTBEAT, HEARTBEAT_MS, message, RETRY } from './cluster-feed.js';

/** What a client is told first. */
export interface ServicesHello {
  readonly zookeeper: string;
  /** The parent of all services, within the chroot. */
  readonly path: string;
  /** Whether clients with the token may change anything. */
  readonly writes: boolean;
}

/** Entries that are new or different, and the paths of those that have gone. */
export interface ServiceChanges {
  readonly set: readonly (readonly [path: string, entry: ServiceEntry])[];
  readonly gone: readonly string[];
}

/** Entries in one message at most: the memory that a slow client takes, at some 3 KB each. */
const ENTRIES = 200;
/** From one look at the tree to the next at least, in milliseconds: changes in quick succession are told together. */
const PAUSE_MS = 100;

/**
 * The services as server-sent events, for one client: `hello`, then `status` and `entries` whenever they are different. The client is sent what
 * there is when it is ready for more. The tree is followed until the generator ends, as it does with the reason of `gone` as its error.
 */
export async function* serviceEvents(
  { clock, tree, hello }: { readonly clock: Clock; readonly tree: ServiceTree; readonly hello: ServicesHello },
  gone: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  let wake: () => void = () => undefined;
  const unfollow = tree.follow(() => wake());
  const told = new Map<string, ServiceEntry>();
  let status: ServiceTreeStatus | undefined;
  try {
    yield Buffer.from(RETRY);
    yield* message('hello', hello);
    for (;;) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const now = tree.status;
      for (const changes of changesSince(told, tree.entries)) yield* message('entries', changes);
      // Behind the entries: that all has been read is told when all has been sent.
      if (JSON.stringify(now) !== JSON.stringify(status)) yield* message('status', now);
      status = now;
      await clock.sleep(PAUSE_MS, gone);
      const isAwake = await withTimeout(
        clock,
        HEARTBEAT_MS,
        woken.then(() => true),
        gone,
      );
      if (!isAwake) yield HEARTBEAT;
    }
  } finally {
    unfollow();
  }
}

/** Notes in `told` what is yielded. */
export function* changesSince(told: Map<string, ServiceEntry>, entries: ReadonlyMap<string, ServiceEntry>): Generator<ServiceChanges> {
  const gone = [...told.keys()].filter((path) => !entries.has(path));
  for (const path of gone) told.delete(path);
  if (gone.length > 0) yield { set: [], gone };
  const news = [...entries].filter(([path, entry]) => told.get(path) !== entry);
  for (let from = 0; from < news.length; from += ENTRIES) {
    const set = news.slice(from, from + ENTRIES);
    for (const [path, entry] of set) told.set(path, entry);
    yield { set, gone: [] };
  }
}
