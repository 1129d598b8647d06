import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const ANSWERS_WITHIN_MS = 60_000;
/** Java loads thousands of classes, which takes long on a loaded machine. */
const READY_WITHIN_MS = 240_000;

/** What the program threw, by its class. */
export class PeerError extends Error {
  constructor(readonly className: string) {
    super(`the peer threw ${className}`);
  }
}

/** A program that takes its commands line by line, in a separate process. */
export interface LinePeer {
  readonly pid: number | undefined;
  /** What it has reported unasked so far, oldest first. */
  readonly events: readonly { readonly event: string }[];
  /** @throws {PeerError} */
  call<T>(what: string, more?: object, withinMs?: number): Promise<T>;
  /** Ends it as a service ends: it closes its session. */
  stop(): Promise<void>;
  /** Ends it with SIGKILL: its session is left to expire. */
  kill(): Promise<void>;
}

/** How to start one. */
export interface LinePeerOptions {
  /** The program, for people. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the surroundings' environment. */
  readonly env?: Readonly<Record<string, string>>;
}

const peers = new Set<LinePeer>();

/**
 * Starts one, ready when this resolves. It ends with this process.
 *
 * @throws Error with its words when it does not get ready
 */
export async function startLinePeer({ name, command, args, env }: LinePeerOptions): Promise<LinePeer> {
  const peer = talkTo(spawn(command, [...args], { env: { ...process.env, ...env } }), name);
  peers.add(peer);
  await peer.ready;
  return peer;
}

/** For `afterEach`. */
export async function stopLinePeers(): Promise<void> {
  await Promise.all([...peers].map((peer) => peer.kill()));
  peers.clear();
}

function talkTo(
  child: ChildProcessWithoutNullStreams,
  program: string,
): LinePeer & { readonly ready: Promise<void> } {
  const events: { readonly event: string }[] = [];
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
    const reported = JSON.parse(line) as
      | { event: string }
      | { call: number; result?: unknown; error?: string };
    if ('event' in reported) {
      events.push(reported);
      if (reported.event === 'ready') ready.resolve(undefined);
      return;
    }
    const call = calls.get(reported.call);
    calls.delete(reported.call);
    if (reported.error === undefined) call?.resolve(reported.result);
    else call?.reject(new PeerError(reported.error));
  });
  const ended = new Promise<void>((resolve) => {
    const end = (why: string) => {
      gone = new Error(`${program} ${why}: ${stderr}`);
      for (const call of [ready, ...calls.values()]) call.reject(gone);
      calls.clear();
      resolve();
    };
    child.once('close', (code, signal) => end(`ended with ${code ?? signal}`));
    child.once('error', (error) => end(`could not be started: ${error.message}`));
  });
  ready.promise.catch(() => {});

  const call = async <T>(what: string, more: object = {}, withinMs = ANSWERS_WITHIN_MS): Promise<T> => {
    if (gone !== undefined) throw gone;
    lastCall += 1;
    const answer = withResolvers<unknown>();
    calls.set(lastCall, answer);
    child.stdin.write(`${JSON.stringify({ call: lastCall, do: what, ...more })}\n`);
    return (await withinTime(answer.promise, what, withinMs)) as T;
  };
  const withinTime = async (answer: Promise<unknown>, what: string, ms: number) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${program} did not answer ${what}: ${stderr}`)), ms);
    });
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };

  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  void ended.then(() => process.off('exit', onExit));

  return {
    ready: withinTime(ready.promise, 'its start', READY_WITHIN_MS).then(() => undefined),
    events,
    get pid() {
      return child.pid;
    },
    call,
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
