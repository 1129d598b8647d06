import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { compileInterop, JAVA_OPTIONS } from './curator.js';

const ANSWERS_WITHIN_MS = 60_000;

/** An instance as Java sees it. */
export interface JavaInstance {
  readonly name: string;
  readonly id: string;
  readonly address: string | null;
  readonly port: number | null;
  readonly sslPort: number | null;
  readonly payload: unknown;
  /** The name of the payload's class in Java. */
  readonly payloadClass: string | null;
  readonly registrationTimeUTC: number;
  readonly serviceType: string | null;
  /** What Curator makes of the uriSpec. */
  readonly url: string | null;
  readonly enabled: boolean;
}

/** What Java is to register. */
export interface JavaInit {
  readonly name: string;
  readonly id: string;
  readonly address: string;
  readonly port?: number;
  readonly sslPort?: number;
  /** An object arrives as a `TreeMap`. */
  readonly payload?: unknown;
  /** Spring's payload instead. */
  readonly spring?: unknown;
  readonly serviceType?: string;
  /** Such as `{scheme}://{address}:{port}`. */
  readonly uriSpec?: string;
  readonly enabled?: boolean;
}

/** Java's cache has changed, or its connection. */
export type JavaEvent =
  | { readonly event: 'ready' }
  | { readonly event: 'state'; readonly state: string }
  | { readonly event: 'cache'; readonly name: string; readonly instances: readonly JavaInstance[] };

/** What Java threw, by its class. */
export class JavaError extends Error {
  constructor(readonly className: string) {
    super(`Java threw ${className}`);
  }
}

/** A Java service that uses Curator, in a process of its own: `test/interop/CuratorPeer.java`. */
export interface CuratorPeer {
  readonly pid: number | undefined;
  /** What has happened there so far, oldest first. */
  readonly events: readonly JavaEvent[];
  register(instance: JavaInit): Promise<void>;
  update(instance: JavaInit): Promise<void>;
  unregister(name: string, id: string): Promise<void>;
  names(): Promise<readonly string[]>;
  /** `queryForInstances`. */
  instances(name: string): Promise<readonly JavaInstance[]>;
  /** `queryForInstance`. */
  instance(name: string, id: string): Promise<JavaInstance | null>;
  /** Starts a `ServiceCache`, whose changes are told among the events. */
  follow(name: string): Promise<void>;
  /** What that cache holds. */
  cached(name: string): Promise<readonly JavaInstance[]>;
  /** Starts a `ServiceProvider` that goes round. */
  provide(name: string): Promise<void>;
  /** What that provider picks. */
  pick(name: string): Promise<JavaInstance | null>;
  /** What Curator's serializer makes of a znode's data. */
  decode(json: string): Promise<JavaInstance>;
  /** Ends it as a service ends: it closes its session. */
  stop(): Promise<void>;
  /** Ends it with SIGKILL: its session is left to expire. */
  kill(): Promise<void>;
}

export interface CuratorPeerOptions {
  readonly connect: string;
  readonly basePath: string;
  /** @default 10000 */
  readonly sessionTimeoutMs?: number;
  /** The class that its payloads are cast to: `Object`, `Map`, or Spring's. @default any */
  readonly payload?: 'any' | 'map' | 'spring';
  /** Whether it writes the field `enabled`: Curator leaves it out unless its serializer is told otherwise. @default true */
  readonly enabledField?: boolean;
}

const peers = new Set<CuratorPeer>();

/**
 * Starts a Java service, connected to ZooKeeper when this resolves. It ends with this process.
 *
 * @throws Error with its words when it does not get ready
 */
export async function startCuratorPeer(options: CuratorPeerOptions): Promise<CuratorPeer> {
  const { connect, basePath, sessionTimeoutMs = 10_000, payload = 'any', enabledField = true } = options;
  const args = [connect, basePath, String(sessionTimeoutMs), payload, String(enabledField)];
  const child = spawn('java', [...JAVA_OPTIONS, '-cp', await compileInterop(), 'CuratorPeer', ...args]);
  const peer = talkTo(child);
  peers.add(peer);
  await peer.ready;
  return peer;
}

/** For `afterEach`. */
export async function stopCuratorPeers(): Promise<void> {
  await Promise.all([...peers].map((peer) => peer.kill()));
  peers.clear();
}

function talkTo(child: ChildProcessWithoutNullStreams): CuratorPeer & { readonly ready: Promise<void> } {
  const events: JavaEvent[] = [];
  const calls = new Map<number, PromiseWithResolvers<unknown>>();
  const ready = withResolvers<unknown>();
  let stderr = '';
  let lastCall = 0;
  let gone: Error | undefined;
  child.stderr.setEncoding('utf8').on('data', (words: string) => {
    stderr = `${stderr}${words}`.slice(-4_000);
  });
  child.stdin.on('error', () => {});
  createInterface(child.stdout).on('line', (line) => {
    const told = JSON.parse(line) as JavaEvent | { call: number; result?: unknown; error?: string };
    if ('event' in told) {
      events.push(told);
      if (told.event === 'ready') ready.resolve(undefined);
      return;
    }
    const call = calls.get(told.call);
    calls.delete(told.call);
    if (told.error === undefined) call?.resolve(told.result);
    else call?.reject(new JavaError(told.error));
  });
  const ended = new Promise<void>((resolve) => {
    const end = (why: string) => {
      gone = new Error(`CuratorPeer ${why}: ${stderr}`);
      for (const call of [ready, ...calls.values()]) call.reject(gone);
      calls.clear();
      resolve();
    };
    child.once('close', (code, signal) => end(`ended with ${code ?? signal}`));
    child.once('error', (error) => end(`could not be started: ${error.message}`));
  });
  ready.promise.catch(() => {});

  const call = async <T>(what: string, more: object = {}): Promise<T> => {
    if (gone !== undefined) throw gone;
    lastCall += 1;
    const answer = withResolvers<unknown>();
    calls.set(lastCall, answer);
    child.stdin.write(`${JSON.stringify({ call: lastCall, do: what, ...more })}\n`);
    return (await withinTime(answer.promise, what)) as T;
  };
  const withinTime = async (answer: Promise<unknown>, what: string) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`CuratorPeer did not answer ${what}: ${stderr}`)), ANSWERS_WITHIN_MS);
    });
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };

  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  void ended.then(() => process.off('exit', onExit));

  return {
    ready: withinTime(ready.promise, 'its start').then(() => undefined),
    events,
    get pid() {
      return child.pid;
    },
    register: (instance) => call('register', { instance }),
    update: (instance) => call('update', { instance }),
    unregister: (name, id) => call('unregister', { name, id }),
    names: () => call('names'),
    instances: (name) => call('instances', { name }),
    instance: (name, id) => call('instance', { name, id }),
    follow: (name) => call('follow', { name }),
    cached: (name) => call('cached', { name }),
    provide: (name) => call('provide', { name }),
    pick: (name) => call('pick', { name }),
    decode: (json) => call('decode', { json }),
    async stop() {
      child.stdin.end();
      await ended;
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/** `Promise.withResolvers`, which Node 20 does not have. */
function withResolvers<T>(): PromiseWithResolvers<T> {
  let resolvers: Omit<PromiseWithResolvers<T>, 'promise'> | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    resolvers = { resolve, reject };
  });
  return { promise, ...(resolvers as Omit<PromiseWithResolvers<T>, 'promise'>) };
}
