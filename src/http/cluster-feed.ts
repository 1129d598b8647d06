import { orAborted } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type { ClusterView, CurrentCluster } from '../monitor/cluster-view.js';
import type { WatchedNode } from '../monitor/node-monitor.js';
import type { SharedMessages } from './shared-messages.js';

/** The process' own node id, for clients of the cluster that it is part of. */
export interface FeedInstance {
  readonly monitor: Pick<WatchedNode, 'onEvent'>;
  /** What `/readyz` answers at this moment; all of it can be told as JSON. */
  json(): Readonly<Record<string, unknown>>;
}

/** What a {@link ClusterFeed} tells of. */
export interface ClusterFeedOptions {
  readonly clock: Clock;
  readonly view: ClusterView;
  readonly messages: SharedMessages;
  readonly instance: FeedInstance | undefined;
}

/** How long a new client waits for a scan, in milliseconds: then it is told that nothing is known yet. */
const HELLO_TIMEOUT_MS = 1_000;
/** How often the process' own node id is checked, in milliseconds: no event tells that a deadline has passed. */
const TICK_MS = 1_000;
/** How often a client is sent at least a comment, in ticks. */
const HEARTBEAT_TICKS = 10;
const HEARTBEAT = Buffer.from(':\n\n');
/** How long a browser is to wait before it connects again, in milliseconds. */
const RETRY = 'retry: 1000\n';

/** What a client has been sent last. */
interface Sent extends Pick<CurrentCluster, 'revision' | 'store' | 'tree'> {
  readonly eventId: number;
  readonly instanceChanges: number;
}

/**
 * Sends a cluster to clients as server-sent events: everything first, and then each part that is different, as a whole. A client is sent what there
 * is when it is ready for more: a slow one misses snapshots, and nothing is kept for it. The cluster is followed while there are clients.
 */
export class ClusterFeed {
  #clients = 0;
  #stop: (() => void) | undefined;
  /** Resolves when there may be news for the clients; another one then. */
  #news = Promise.resolve();
  #wake: () => void = () => undefined;
  /** The process' own health but for the time that is left, and how often it has changed. */
  #instanceFacts = '';
  #instanceChanges = 0;

  constructor(private readonly options: ClusterFeedOptions) {}

  /** A stream for one more client, which leaves by cancelling it. Nothing is made before it is read. */
  open(): ReadableStream<Uint8Array> {
    const gone = new AbortController();
    const messages = this.#messages(gone.signal);
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await messages.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: () => gone.abort(),
      },
      { highWaterMark: 0 },
    );
  }

  async *#messages(gone: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const leave = this.#join();
    gone.addEventListener('abort', leave);
    try {
      await this.#firstScan(gone);
      let sent: Sent | undefined;
      for (;;) {
        const news = this.#news;
        const before = sent;
        const { chunks, now } = this.#chunks(before);
        sent = now;
        yield* chunks;
        if (now.revision !== before?.revision) yield* this.#furtherPages();
        if (chunks.length === 0) yield HEARTBEAT;
        await orAborted(news, gone);
      }
    } finally {
      leave();
    }
  }

  /** Everything, or what is different from what has been sent before. */
  #chunks(sent: Sent | undefined): { readonly chunks: readonly Uint8Array[]; readonly now: Sent } {
    const { report, revision, store, tree, events } = this.options.view.current();
    const { messages } = this.options;
    const now = { revision, store, tree, eventId: events.at(-1)?.id ?? 0, instanceChanges: this.#instanceChanges };
    const first = report && messages.parts(report)[0];
    if (sent === undefined) {
      const [reportJson, treeJson] = [messages.json('report', first), messages.json('tree', tree)];
      const begin = `${RETRY}event: hello\ndata: {"epoch":"${this.options.view.epoch}","instance":${this.#instanceJson()},\ndata: "report":`;
      const middle = `,\ndata: "store":${JSON.stringify(store)},"events":${JSON.stringify(events)},\ndata: "tree":`;
      return { chunks: [Buffer.from(begin), reportJson, Buffer.from(middle), treeJson, Buffer.from('}\n\n')], now };
    }
    const chunks: Uint8Array[] = [];
    if (store !== sent.store) chunks.push(messages.message('store', store));
    if (revision !== sent.revision && first) chunks.push(messages.message('report', first));
    if (tree !== sent.tree) chunks.push(messages.message('tree', tree));
    for (const event of events) if (event.id > sent.eventId) chunks.push(messages.message('change', event, `id: ${event.id}\n`));
    if (now.instanceChanges !== sent.instanceChanges) chunks.push(Buffer.from(`event: instance\ndata: ${this.#instanceJson()}\n\n`));
    return { chunks, now };
  }

  /** Each as it is when the client is ready for it: only that one is kept meanwhile. */
  *#furtherPages(): Generator<Uint8Array> {
    const { view, messages } = this.options;
    const pageAt = (index: number) => {
      const { report } = view.current();
      const page = report && messages.parts(report)[index];
      return page && messages.message('page', page);
    };
    for (let index = 1, page = pageAt(index); page; index += 1, page = pageAt(index)) yield page;
  }

  /** What cannot be read is told as such. */
  async #firstScan(gone: AbortSignal): Promise<void> {
    const { clock, view } = this.options;
    const over = new AbortController();
    const end = () => over.abort();
    gone.addEventListener('abort', end);
    const scanned = view.snapshot(over.signal).catch(() => undefined);
    const late = clock.sleep(HELLO_TIMEOUT_MS, over.signal).catch(() => undefined);
    await Promise.race([scanned, late]);
    end();
    gone.throwIfAborted();
  }

  /** One more client. Returns what ends its part; idempotent. */
  #join(): () => void {
    this.#clients += 1;
    if (this.#clients === 1) this.#begin();
    let isHere = true;
    return () => {
      if (!isHere) return;
      isHere = false;
      this.#clients -= 1;
      if (this.#clients === 0) this.#stop?.();
    };
  }

  #begin(): void {
    const { view, instance } = this.options;
    const over = new AbortController();
    this.#renew();
    this.#instanceFacts = this.#currentFacts();
    const unfollow = view.follow(() => this.#tell());
    const forget = instance?.monitor.onEvent(() => this.#instanceChanged());
    void this.#tick(over.signal);
    this.#stop = () => {
      over.abort();
      unfollow();
      forget?.();
    };
  }

  #tell(): void {
    this.#wake();
    this.#renew();
  }

  #renew(): void {
    this.#news = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async #tick(signal: AbortSignal): Promise<void> {
    for (let count = 1; !signal.aborted; count += 1) {
      await this.options.clock.sleep(TICK_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      if (this.#currentFacts() !== this.#instanceFacts) this.#instanceChanged();
      else if (count % HEARTBEAT_TICKS === 0) this.#tell();
    }
  }

  #instanceChanged(): void {
    this.#instanceFacts = this.#currentFacts();
    this.#instanceChanges += 1;
    this.#tell();
  }

  /** What changes by more than the passing of time. */
  #currentFacts(): string {
    return JSON.stringify({ ...this.options.instance?.json(), validForMs: null });
  }

  #instanceJson(): string {
    return JSON.stringify(this.options.instance?.json() ?? null);
  }
}
