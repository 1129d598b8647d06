import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../clock.js';
import { parseListenAddress } from '../http/listen-address.js';
import { StoreSession } from '../lease/store-session.js';
import { FileLeaseStore } from '../store/file/file-lease-store.js';
import { openDemoConsole } from './demo-console.js';
import { DemoFailure, DemoStory } from './demo-story.js';
import { startDemoTask } from './demo-task.js';
import { DemoView } from './demo-view.js';
import { ExitCode, exitCodeOfSignal } from './exit-codes.js';
import type { Io } from './io.js';
import { Interrupted, SignalRelay } from './signal-relay.js';
import { complain, reportFailure } from './store-command.js';

/** How long the demo goes on. */
export interface DemoOptions {
  /** Ends by itself when one take-over has been shown. */
  readonly once: boolean;
  /** Where the console is to be, `HOST:PORT`. @default 127.0.0.1:7070, or any free port while that is taken */
  readonly http?: string | undefined;
}

const NODES = 3;
const REQUEST_TIMEOUT_MS = 5_000;
/** Signals that arrive this close together are one request, in milliseconds: npm hands on a Ctrl-C that the terminal has sent to all. */
const SAME_REQUEST_MS = 1_000;

/**
 * `nodelease demo`: a fleet of real processes on the embedded store, in a folder of its own that is removed at the end. Needs no settings,
 * and heeds none; its console is served for a browser. Every process that it starts ends with it, however it ends.
 *
 * Resolves to 0 when it was interrupted by SIGINT or SIGTERM or, with `once`, when the take-over has been shown.
 *
 * @throws {ConfigError} when the console cannot listen where it was asked to
 */
export async function demoCommand({ once, http }: DemoOptions, io: Io): Promise<number> {
  const { clock, random, env, program } = io;
  const at = http === undefined ? undefined : parseListenAddress(http, '--http');
  const signals = new SignalRelay(io.signals);
  const hurry = new AbortController();
  const directory = mkdtempSync(join(tmpdir(), 'nodelease-demo-'));
  const store = new FileLeaseStore({ directory, clock, random });
  const session = () => new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
  const console = await openDemoConsole({ at, session: session(), clock, random }).catch(async (error: unknown) => {
    await clear(store, directory);
    signals.close();
    throw error;
  });
  const ending = once ? 'It ends when it has shown a take-over.' : 'Ctrl-C ends it.';
  const title = [
    `nodelease demo: ${NODES} tasks, ${NODES} node ids. ${ending}`,
    `Console: ${console.url}  Leases, as long as it runs: ${store.url}`,
  ] as const;
  const view = new DemoView(title, clock, io);
  const options = ['--store', store.url, '--nodes', String(NODES), '--duration', '3s', '--grace', '1s'];
  const story = new DemoStory({
    session: session(),
    clock,
    view,
    start: (name) => startDemoTask({ name, program, options, env, clock }),
    nodes: NODES,
    once,
  });
  let failure: unknown;
  try {
    await story.play(signals.interrupted);
  } catch (error) {
    failure = error;
  }
  try {
    onSecondRequest(signals, clock, hurry);
    await story.end(hurry.signal);
  } finally {
    view.end();
    await console.close();
    await clear(store, directory);
    signals.close();
  }
  return exitCodeFor(failure, io);
}

async function clear(store: FileLeaseStore, directory: string): Promise<void> {
  await store.close();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
}

/** Who asks again to end has no time for tasks that end in order. */
function onSecondRequest(signals: SignalRelay, clock: Clock, hurry: AbortController): void {
  const begun = clock.monotonic();
  signals.handTo((signal) => {
    if (signal !== 'SIGWINCH' && clock.monotonic() - begun >= SAME_REQUEST_MS) hurry.abort();
  });
}

function exitCodeFor(failure: unknown, io: Io): number {
  if (failure === undefined) return ExitCode.ok;
  if (failure instanceof Interrupted) {
    return failure.signal === 'SIGINT' || failure.signal === 'SIGTERM' ? ExitCode.ok : exitCodeOfSignal(failure.signal);
  }
  if (!(failure instanceof DemoFailure)) return reportFailure(failure, { logLevel: 'info' }, io);
  complain(io, `the demo failed: ${failure.message}`);
  return ExitCode.internal;
}
