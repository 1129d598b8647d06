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

/** A snapshot as it is sent. */
interface Written {
  readonly snapshot: ClusterSnapshot;
  /** The end of a first message: the report, which is a part of it, and all else but what each client is told for itself. */
  readonly end: Uint8Array<ArrayBuffer>;
  readonly report: Uint8Array<ArrayBuffer>;
}

/** Snapshots as bytes. Each is written once, however many ask for it, and all are sent the same ones: that of a large cluster takes megabytes. */
export class SnapshotText {
  #last: Written | undefined;

  /** The report alone, as JSON. It must not be changed. */
  report(snapshot: ClusterSnapshot): Uint8Array<ArrayBuffer> {
    return this.#written(snapshot).report;
  }

  /** The first message of a stream, in parts; the last of them is the same one for all that are told the same snapshot. */
  hello(epoch: string, instance: string, snapshot: ClusterSnapshot): readonly Uint8Array[] {
    return [helloBegin(epoch, instance), this.#written(snapshot).end];
  }

  #written(snapshot: ClusterSnapshot): Written {
    if (this.#last?.snapshot === snapshot) return this.#last;
    const { store, tree, events } = snapshot;
    const before = 'data: "report":';
    const report = JSON.stringify(snapshot.report);
    const end = utf8.encode(`${before}${report},\ndata: ${JSON.stringify({ store, tree, events }).slice(1)}\n\n`);
    this.#last = { snapshot, end, report: end.subarray(before.length, before.length + Buffer.byteLength(report)) };
    return this.#last;
  }
}

/** The first message of a stream while the cluster has never been read. */
export function emptyHello(epoch: string, instance: string, state: 'failing' | 'unknown', problem: string | null): readonly Uint8Array[] {
  const store: StoreHealth = { state, problem, latencyMs: null, clockOffsetMs: null, lookedAt: null };
  const rest = JSON.stringify({ report: null, store, tree: null, events: [] }).slice(1);
  return [helloBegin(epoch, instance), utf8.encode(`data: ${rest}\n\n`)];
}

/** The data of one event may stand in several lines, whose line breaks are a part of it: here they are between the members of an object. */
function helloBegin(epoch: string, instance: string): Uint8Array {
  return utf8.encode(`${RETRY}event: hello\ndata: {"epoch":${JSON.stringify(epoch)},"instance":${instance},\n`);
}
