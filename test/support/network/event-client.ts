import type { ClusterEvent, StoreHealth, TreeReport } from '../../../src/node/wire/cluster-snapshot.js';
import type { NodeReport, StatusReport } from '../../../src/node/wire/status-report.js';

/** What a page knows of a cluster that reads `/api/events`. */
export class EventClient {
  readonly #abort = new AbortController();
  readonly #nodes = new Map<number, NodeReport>();
  hellos = 0;
  epoch = '';
  head: Omit<StatusReport, 'nodes'> | null = null;
  store: StoreHealth | undefined;
  tree: TreeReport | null = null;
  instance: unknown;
  /** All that has been reported of the instance, in order. */
  instances: unknown[] = [];
  events: ClusterEvent[] = [];
  /** Resolves when the stream has ended, however that was. */
  readonly ended: Promise<void>;

  private constructor(response: Response, abort: AbortController) {
    this.#abort = abort;
    this.ended = this.#read(response).catch(() => undefined);
  }

  /** @throws Error unless the answer is a stream of events */
  static async open(url: string, headers: Record<string, string> = {}): Promise<EventClient> {
    const abort = new AbortController();
    const response = await fetch(`${url}/api/events`, { headers, signal: abort.signal });
    if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
    return new EventClient(response, abort);
  }

  node(id: number): NodeReport | undefined {
    return this.#nodes.get(id);
  }

  get size(): number {
    return this.#nodes.size;
  }

  /** The kinds of what has happened, with the node ids that it happened to. */
  get history(): string[] {
    return this.events.map(({ kind, nodeId }) => (nodeId === null ? kind : `${kind} ${nodeId}`));
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(response: Response): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const piece of response.body ?? []) {
      const messages = (rest + decoder.decode(piece, { stream: true })).split('\n\n');
      rest = messages.pop() ?? '';
      for (const message of messages) {
        const [, event = ''] = /^event: (.*)$/m.exec(message) ?? [];
        const data = [...message.matchAll(/^data: (.*)$/gm)].map(([, line = '']) => line).join('\n');
        if (event !== '') this.#take(event, JSON.parse(data));
      }
    }
  }

  #take(event: string, data: unknown): void {
    const taken: Readonly<Record<string, () => void>> = {
      hello: () => this.#begin(data as Hello),
      report: () => this.#takeReport(data as StatusReport),
      page: () => this.#takePage(data as StatusReport),
      store: () => {
        this.store = data as StoreHealth;
      },
      tree: () => {
        this.tree = data as TreeReport | null;
      },
      instance: () => {
        this.instance = data;
        this.instances.push(data);
      },
      change: () => {
        this.events.push(data as ClusterEvent);
      },
    };
    taken[event]?.();
  }

  #begin({ epoch, report, store, tree, events, instance }: Hello): void {
    this.hellos += 1;
    this.#nodes.clear();
    this.epoch = epoch;
    this.head = report;
    if (report) this.#takeReport(report);
    Object.assign(this, { store, tree, events: [...events], instance });
    this.instances.push(instance);
  }

  #takeReport(report: StatusReport): void {
    this.head = report;
    this.#takePage(report);
  }

  #takePage({ nodes, page }: Pick<StatusReport, 'nodes' | 'page'>): void {
    const [from, next] = [page?.from ?? 0, page?.next ?? Number.POSITIVE_INFINITY];
    for (const id of this.#nodes.keys()) if (id >= from && id < next) this.#nodes.delete(id);
    for (const node of nodes) this.#nodes.set(node.id, node);
  }
}

interface Hello {
  readonly epoch: string;
  readonly instance: unknown;
  readonly report: StatusReport | null;
  readonly store: StoreHealth;
  readonly tree: TreeReport | null;
  readonly events: readonly ClusterEvent[];
}
