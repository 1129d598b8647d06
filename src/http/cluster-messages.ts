import type { ClusterSnapshot, ClusterUpdate, StoreHealth } from '../monitor/cluster-view.js';

const utf8 = new TextEncoder();

/** One server-sent event. JSON has no line breaks of its own. */
export function message(event: string, json: string, field = ''): Uint8Array {
  return utf8.encode(`${field}event: ${event}\ndata: ${json}\n\n`);
}

/** How long a browser is to wait before it connects again, in milliseconds. */
const RETRY = 'retry: 1000\n';

/** Shows that the connection is alive; clients skip it. */
export const HEARTBEAT = utf8.encode(':\n\n');

/** What is different in a cluster, as it is sent. */
export function updateMessage(update: ClusterUpdate): Uint8Array {
  switch (update.type) {
    case 'nodes':
      return message('nodes', JSON.stringify(update.nodes));
    case 'cluster':
      return message('cluster', JSON.stringify(update.report));
    case 'store':
      return message('store', JSON.stringify(update.store));
    case 'tree':
      return message('tree', JSON.stringify(update.tree));
    case 'change':
      return message('change', JSON.stringify(update.event), `id: ${update.event.id}\n`);
  }
}

/** Snapshots as JSON. Each is written once, however many ask for it: that of a large cluster takes megabytes. */
export class SnapshotText {
  #last: { readonly snapshot: ClusterSnapshot; readonly report: string; hello?: string } | undefined;

  /** The report alone. */
  report(snapshot: ClusterSnapshot): string {
    if (this.#last?.snapshot !== snapshot) this.#last = { snapshot, report: JSON.stringify(snapshot.report) };
    return this.#last.report;
  }

  /** The first message of a stream. */
  hello(epoch: string, instance: string, snapshot: ClusterSnapshot): Uint8Array {
    const { store, tree, events } = snapshot;
    return hello(epoch, instance, `"report":${this.report(snapshot)},${JSON.stringify({ store, tree, events }).slice(1)}`);
  }
}

/** The first message of a stream while the cluster has never been read. */
export function emptyHello(epoch: string, instance: string, state: 'failing' | 'unknown', problem: string | null): Uint8Array {
  const store: StoreHealth = { state, problem, latencyMs: null, clockOffsetMs: null, lookedAt: null };
  return hello(epoch, instance, JSON.stringify({ report: null, store, tree: null, events: [] }).slice(1));
}

function hello(epoch: string, instance: string, rest: string): Uint8Array {
  return message('hello', `{"epoch":${JSON.stringify(epoch)},"instance":${instance},${rest}`, RETRY);
}
