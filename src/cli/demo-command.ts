import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../clock.js';
import { StoreSession } from '../lease/store-session.js';
import { FileLeaseStore } from '../store/file/file-lease-store.js';
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
}

const NODES = 3;
const REQUEST_TIMEOUT_MS = 5_000;
/** Signals that arrive this close together are one request, in milliseconds: npm hands on a Ctrl-C that the terminal has sent to all. */
const SAME_REQUEST_MS = 1_000;

/**
 * `nodelease demo`: a fleet of real processes on the embedded store, in a folder of its own that is removed at the end. Needs no settings,
 * and heeds none. Every process that it starts ends with it, however it ends.
 *
 * Resolves to 0 when it was interrupted by SIGINT or SIGTERM or, with `once`, when the take-over has been shown.
 */
export async function demoCommand({ once }: DemoOptions, io: Io): Promise<number> {
  const { clock, random, env, program } = io;
  const signals = new SignalRelay(io.signals);
  const hurry = new AbortController();
  const directory = mkdtempSync(join(tmpdir(), 'nodelease-demo-'));
  const store = new FileLeaseStore({ directory, clock, random });
  const ending = once ? 'It ends when it has shown a take-over.' : 'Ctrl-C ends it.';
  const title = [
    `nodelease demo: ${NODES} tasks, ${NODES} node ids. ${ending}`,
    `The leases are in ${store.url} as long as it runs.`,
  ] as const;
  const view = new DemoView(title, clock, io);
  const options = ['--store', store.url, '--nodes', String(NODES), '--duration', '3s', '--grace', '1s'];
  const story = new DemoStory({
    session: new StoreSession(store, clock, REQUEST_TIMEOUT_MS),
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
    await store.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    signals.close();
  }
  return exitCodeFor(failure, io);
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
