import { join } from 'node:path';
import { installed } from '../installed.js';
import { packageRoot } from '../package-root.js';
import { compileCuratorPrograms } from './interop.js';
import { startJavaPeer } from './java-peer.js';
import { type LinePeer, startLinePeer } from './line-peer.js';

/**
 * What can be had and given back. `latch` and `selector` are two kinds of election; `lock-extra` is kazoo's
 * own, with `extra_lock_patterns`.
 */
export type RecipeKind =
  | 'lock'
  | 'lock-extra'
  | 'read'
  | 'write'
  | 'semaphore'
  | 'latch'
  | 'selector'
  | 'double-barrier';

/** What a peer is to acquire. */
export interface Wanted {
  /** The test's name for it. Of an election, the participant's id. */
  readonly id: string;
  readonly kind: RecipeKind;
  readonly path: string;
  /** A semaphore's leases, a double barrier's members. */
  readonly count?: number;
  /** @default 30000 */
  readonly timeoutMs?: number;
}

/** What was acquired. */
export interface Acquired {
  /** The own znode; null where the peer does not know it. */
  readonly path: string | null;
  /** Its `czxid`, in decimal. */
  readonly token: string | null;
}

/** One tenure of a contender: transactions at which it certainly held. */
export interface Tenure {
  readonly token: string;
  readonly from: string;
  readonly to: string;
}

/** What a contender of {@link RecipePeer.contend} did. */
export interface ContenderReport {
  readonly contender: string;
  readonly kind: RecipeKind;
  readonly tenures: readonly Tenure[];
}

/** What contenders are to contend for. */
export interface Contest {
  /** One after the other for each contender. */
  readonly kinds: readonly RecipeKind[];
  readonly path: string;
  /** The parent of the znodes that contenders write within each tenure. */
  readonly witness: string;
  readonly count: number;
  readonly forMs: number;
}

/** What a counter did. */
export interface Counted {
  readonly succeeded: boolean;
  readonly value: number;
}

/**
 * A program that uses recipes, in a process of its own: Java with Curator, Python with kazoo, or nodelease.
 * kazoo knows `acquire`, `release` and `contend` only.
 */
export interface RecipePeer extends LinePeer {
  /** Null when it was not acquired in time. */
  acquire(wanted: Wanted): Promise<Acquired | null>;
  release(id: string): Promise<void>;
  /** From the write lock to the read lock. */
  downgrade(id: string): Promise<void>;
  /** Who takes part in an election, as a participant sees it. */
  participants(id: string): Promise<readonly { readonly id: string; readonly leads: boolean }[]>;
  /** Its session, as 16 hex digits. */
  session(): Promise<string>;
  barrier(act: 'set' | 'remove', path: string): Promise<void>;
  /** False when the barrier still stood at the end. */
  waitOnBarrier(path: string, timeoutMs: number): Promise<boolean>;
  /** With `promoted`, Curator's takes its lock as soon as another one was faster. */
  count(path: string, act: 'get' | 'add' | 'set', value?: number, promoted?: boolean): Promise<Counted>;
  compareAndSet(path: string, expected: number, value: number): Promise<Counted>;
  /** To a simple queue, as hex digits. */
  offer(path: string, data: string): Promise<void>;
  /** From a simple queue; null when there was nothing in time. */
  poll(path: string, timeoutMs: number): Promise<string | null>;
  /** To a distributed queue, as text. */
  put(path: string, item: string): Promise<void>;
  /**
   * Takes from a distributed queue, each item an event, until it is asked to stop. With `fails`, each item's
   * consumer fails.
   */
  consume(consumer: QueueConsumer): Promise<void>;
  /** Its consumer takes no longer, neither for the item that it has nor for later ones. */
  endHold(id: string): Promise<void>;
  stopConsuming(id: string): Promise<void>;
  contend(contest: Contest): Promise<readonly ContenderReport[]>;
}

/** What takes from a distributed queue. */
export interface QueueConsumer {
  readonly id: string;
  readonly path: string;
  /** With it an item is taken at least once, without it at most once. */
  readonly lockPath?: string;
  readonly fails?: boolean;
  /** How long its consumer takes with an item, until it gets {@link RecipePeer.endHold}. @default 0 */
  readonly holdMs?: number;
}

/** Which server, and how long its session outlives its connection. */
export interface RecipePeerOptions {
  readonly connect: string;
  /** @default 10000 */
  readonly sessionTimeoutMs?: number;
}

const STUCK_MS = 120_000;

/** Starts a Java service with Curator: `test/interop/RecipePeer.java`. */
export async function startCuratorRecipes(
  options: RecipePeerOptions,
  javaOptions?: readonly string[],
): Promise<RecipePeer> {
  return recipePeer(
    await startJavaPeer(await compileCuratorPrograms(), 'RecipePeer', args(options), javaOptions),
  );
}

/** Starts a Python service with kazoo: `test/interop/kazoo_peer.py`. */
export async function startKazooRecipes(options: RecipePeerOptions): Promise<RecipePeer> {
  const folder = await installed('install-python.sh', ['kazoo'], 'install Python 3 with pip');
  const program = join(packageRoot, 'test/interop/kazoo_peer.py');
  const env = { PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' };
  return recipePeer(
    await startLinePeer({ name: 'kazoo_peer', command: 'python3', args: [program, ...args(options)], env }),
  );
}

/** Starts a Node service with nodelease, as built: `test/fixtures/programs/recipe-peer.mjs`. */
export async function startOurRecipes(options: RecipePeerOptions): Promise<RecipePeer> {
  const program = join(packageRoot, 'test/fixtures/programs/recipe-peer.mjs');
  return recipePeer(
    await startLinePeer({
      name: 'recipe-peer',
      command: process.execPath,
      args: [program, ...args(options)],
    }),
  );
}

function args({ connect, sessionTimeoutMs = 10_000 }: RecipePeerOptions): string[] {
  return [connect, String(sessionTimeoutMs)];
}

function recipePeer(peer: LinePeer): RecipePeer {
  const { call } = peer;
  return {
    get pid() {
      return peer.pid;
    },
    events: peer.events,
    call,
    stop: () => peer.stop(),
    kill: () => peer.kill(),
    acquire: ({ timeoutMs = 30_000, ...wanted }) => call('acquire', { timeoutMs, ...wanted }),
    release: (id) => call('release', { id }),
    downgrade: (id) => call('downgrade', { id }),
    participants: (id) => call('participants', { id }),
    session: () => call('session'),
    barrier: (act, path) => call(`barrier-${act}`, { path }),
    waitOnBarrier: (path, timeoutMs) => call('barrier-wait', { path, timeoutMs }),
    count: (path, act, value = 0, promoted = false) => call('counter', { path, act, value, promoted }),
    compareAndSet: (path, expected, value) =>
      call('counter', { path, act: 'compare-and-set', expected, value }),
    offer: (path, data) => call('offer', { path, data }),
    poll: (path, timeoutMs) => call('poll', { path, timeoutMs }),
    put: (path, data) => call('put', { path, data }),
    consume: (consumer) => call('consume', consumer),
    endHold: (id) => call('end-hold', { id }),
    stopConsuming: (id) => call('stop-consuming', { id }),
    contend: ({ forMs, ...contest }) => call('contend', { timeoutMs: forMs, ...contest }, forMs + STUCK_MS),
  };
}
