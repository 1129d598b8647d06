import {
  type ClusterEvent,
  type ClusterHello,
  type StoreHealth,
  type TreeReport,
  UNKNOWN_STORE,
} from '../../../node/wire/cluster-snapshot.js';
import type { NodeHealthJson } from '../../../node/wire/node-health.js';
import {
  type NodeReport,
  type ReportHead,
  type ReportPage,
  type StatusReport,
  warningOf,
} from '../../../node/wire/status-report.js';
import type { StreamEvent } from '../feed.js';
import type { PageClock } from '../page-clock.js';
import { leftMs, type NodeState, stateOf } from './node-state.js';

/** A node id, and when the page received it, on its monotonic clock. */
export interface SeenNode {
  readonly node: NodeReport;
  readonly receivedAt: number;
  /** The same object until a cell shows something else: a renewal does not replace it. */
  readonly shown: NodeReport;
}

/** A node id at the moment of a drawing. */
export interface NodeNow {
  /** Its state, holder, version and problem are current; what a renewal changes may be older. */
  readonly node: NodeReport;
  /** How much longer its lease is valid, in milliseconds; undefined where there is nothing to run out. */
  readonly left: number | undefined;
  readonly state: NodeState;
}

/** Events, and latencies of the store, that are kept. */
const EVENTS = 200;
const LATENCIES = 60;
/** The ids in a group of 256 that are never leased. */
const RESERVED = 8;

/** What the page knows of the cluster, from the events of the stream. */
export class ClusterModel {
  cluster: ReportHead | null = null;
  store = UNKNOWN_STORE;
  tree: TreeReport | null = null;
  instance: NodeHealthJson | null = null;
  /** What the server has said at the beginning of this connection, and since then of other parts than these. */
  hello: ClusterHello | undefined;
  instanceReceivedAt = 0;
  /** The last 200, newest first. */
  events: readonly ClusterEvent[] = [];
  /** The last event that had happened when the page was opened, or its server was started. */
  lastOld = 0;
  /** In ascending order of the ids. */
  nodes: readonly SeenNode[] = [];
  /** How long the last listings of the store took, in milliseconds, oldest first. */
  latencies: readonly number[] = [];
  /**
   * Since when what there is has not been renewed, on the page's monotonic clock; undefined while it is
   * fresh.
   */
  staleSince: number | undefined;
  /** When something was last heard, on the same clock. */
  heardAt: number | undefined;
  #lastTaken = 0;
  readonly #byId = new Map<number, SeenNode>();
  #connected = false;
  /** When the store was last reported to be fine. */
  #freshAt: number | undefined;

  constructor(private readonly clock: PageClock) {}

  /** True after the first `hello`. */
  get isKnown(): boolean {
    return this.hello !== undefined;
  }

  /** The wall clock when what there is was last fresh, in milliseconds. */
  get now(): number {
    return this.clock.now() - (this.clock.monotonic() - this.#shownAt);
  }

  /** The grace period of the cluster, in milliseconds. */
  get graceMs(): number {
    return this.cluster?.cluster?.graceMs ?? 0;
  }

  /** Whether holders learn of each other's versions: in ZooKeeper, or as Camunda does. */
  get knowsVersions(): boolean {
    return this.cluster?.discovery != null || this.cluster?.format !== undefined;
  }

  node(id: number): SeenNode | undefined {
    return this.#byId.get(id);
  }

  /**
   * How much longer the lease of a node id is valid, and how it is to be shown; as of when it was last fresh.
   */
  look({ node, receivedAt, shown }: SeenNode, at = this.#shownAt): NodeNow {
    const left = leftMs(node, receivedAt, at);
    return { node: shown, left, state: stateOf(node, left) };
  }

  /** All node ids, as of the same moment. */
  lookAtAll(): readonly NodeNow[] {
    const at = this.#shownAt;
    return this.nodes.map((seen) => this.look(seen, at));
  }

  /**
   * How long ago a moment of the page's clock was, in milliseconds; as of when what there is was last fresh.
   */
  since(at: number): number {
    return Math.max(0, this.#shownAt - at);
  }

  /** Called when the connection comes and goes: without one nothing may seem to run out, nor to be fresh. */
  connection(isLive: boolean): void {
    this.#connected = isLive;
    this.#judgeFreshness();
  }

  /** Takes in an event of the stream. @throws {SyntaxError} when its data is no JSON */
  apply({ event, data }: StreamEvent): void {
    const json: unknown = JSON.parse(data);
    this.heardAt = this.clock.monotonic();
    switch (event) {
      case 'hello':
        this.#begin(json as ClusterHello);
        break;
      case 'report':
        this.#takeReport(json as StatusReport);
        break;
      case 'page':
        this.#takePage(json as ReportPage);
        break;
      case 'store':
        this.#takeStore(json as StoreHealth);
        break;
      case 'tree':
        this.tree = json as TreeReport | null;
        break;
      case 'change':
        this.#takeEvent(json as ClusterEvent);
        break;
      case 'instance':
        this.#takeInstance(json as NodeHealthJson);
        break;
      default:
        if (this.hello) this.hello = { ...this.hello, [event]: json };
    }
  }

  /** The events that have happened since this was last called, oldest first; not those of before the page. */
  takeNews(): readonly ClusterEvent[] {
    const news = this.events.filter(({ id }) => id > this.#lastTaken).reverse();
    this.#lastTaken = this.#lastEvent;
    return news;
  }

  #begin(hello: ClusterHello) {
    const { instance, report, store, tree, events } = hello;
    const isSame = hello.epoch === this.hello?.epoch;
    this.hello = hello;
    this.#connected = true;
    if (!isSame || report === null) this.#byId.clear();
    this.cluster = null;
    this.nodes = [];
    if (report !== null) this.#takeReport(report);
    this.tree = tree;
    this.#takeInstance(instance);
    // What a server sends that cannot read the store is older than the message; only the wall clocks can say
    // by how much.
    if (store.state === 'failing' && store.lookedAt !== null)
      this.staleSince = this.clock.monotonic() - Math.max(0, this.clock.now() - store.lookedAt);
    this.#takeStore(store);
    if (!isSame) this.events = [];
    for (const event of events) this.#takeEvent(event);
    if (!isSame) this.lastOld = this.#lastTaken = this.#lastEvent;
  }

  #takeInstance(instance: NodeHealthJson | null) {
    this.instance = instance;
    this.instanceReceivedAt = this.clock.monotonic();
  }

  #takeReport({ nodes, page, ...cluster }: StatusReport) {
    this.cluster = cluster;
    this.#takePage({ nodes, page });
  }

  /**
   * Node ids in place of those from the beginning of the page to that of the next one; of all without a page.
   */
  #takePage({ nodes, page }: ReportPage) {
    const receivedAt = this.clock.monotonic();
    const [from, next] = [page?.from ?? 0, page?.next ?? Number.POSITIVE_INFINITY];
    const before = new Map(this.#byId);
    const add = (node: NodeReport) => {
      const shown = before.get(node.id)?.shown;
      this.#byId.set(node.id, { node, receivedAt, shown: shown && isShownAs(node, shown) ? shown : node });
    };
    for (const id of before.keys()) if (id >= from && id < next) this.#byId.delete(id);
    nodes.forEach(add);
    // With ids from ZooKeeper alone, those of a group that have no znode are free.
    for (const group of this.cluster?.allocation?.groups ?? []) {
      for (let id = Math.max(0, group * 256 - RESERVED); id < group * 256 + 256 - RESERVED; id += 1) {
        if (!this.#byId.has(id)) add(vacancy(id));
      }
    }
    this.nodes = [...this.#byId.values()].sort((a, b) => a.node.id - b.node.id);
  }

  #takeStore(store: StoreHealth) {
    this.store = store;
    if (store.state === 'ok' && store.latencyMs !== null)
      this.latencies = [...this.latencies, store.latencyMs].slice(-LATENCIES);
    this.#judgeFreshness();
  }

  #takeEvent(event: ClusterEvent) {
    if (event.id > this.#lastEvent) this.events = [event, ...this.events].slice(0, EVENTS);
  }

  /** Now, or when what there is was last fresh. */
  get #shownAt() {
    return this.staleSince ?? this.clock.monotonic();
  }

  get #lastEvent() {
    return this.events[0]?.id ?? 0;
  }

  #judgeFreshness() {
    const isFresh = this.#connected && this.store.state !== 'failing';
    const now = this.clock.monotonic();
    if (isFresh) this.#freshAt = now;
    // That nothing comes any more is noticed late: the data are as old as the last message while all was
    // well.
    this.staleSince = isFresh
      ? undefined
      : (this.staleSince ?? (this.#connected ? this.#freshAt : this.heardAt) ?? now);
  }
}

function isShownAs(a: NodeReport, b: NodeReport) {
  const isSame = a.state === b.state && a.version === b.version && a.taskId === b.taskId;
  return isSame && a.problem === b.problem && warningOf(a) === warningOf(b);
}

function vacancy(id: number): NodeReport {
  return {
    id,
    state: 'vacant',
    version: 0,
    taskId: null,
    ageMs: null,
    expiresInMs: null,
    timestamp: null,
    knownNodes: {},
    idWidth: null,
    problem: null,
  };
}
