import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '../../base/errors.js';
import { type NodeServer, startNodeServer } from '../../http/node-server.js';
import { StoreSession } from '../../lease/session/store-session.js';
import { ClusterFollower } from '../../monitor/cluster-follower.js';
import { DEFAULT_LISTEN_ADDRESS, type ListenAddress, reachableUrl } from '../../settings/listen-address.js';
import { FileLeaseStore } from '../../store/file/file-lease-store.js';
import { complain, interruptible, reportFailure } from '../commands/store-command.js';
import { ExitCode, exitCodeOfStop } from '../exit-codes.js';
import { Interrupted } from '../run/signal-relay.js';
import type { Io } from '../terminal/io.js';
import { DemoFailure, DemoStory } from './demo-story.js';
import { startDemoTask } from './demo-task.js';
import { DemoView } from './demo-view.js';

const NODES = 3;
const REQUEST_TIMEOUT_MS = 5_000;
const LABELS = { listen: '--http', bearerTokenFile: '--bearer-token-file' };

/**
 * `nodelease demo`: a fleet of real processes on the embedded store, in a folder of its own that is removed at the end. It needs no settings, and
 * ignores them. A browser can show its console. Every process that it starts ends with it, in whatever way it ends.
 *
 * Resolves to 0 when it was interrupted by SIGINT or SIGTERM or, with `once`, when one take-over has been shown.
 *
 * @param at where the console is. @default 127.0.0.1:7070, or any free port while that is taken
 * @throws {ConfigError} when the console cannot listen there
 */
export async function demoCommand(once: boolean, at: ListenAddress | undefined, io: Io): Promise<number> {
  const { clock, random } = io;
  const directory = mkdtempSync(join(tmpdir(), 'nodelease-demo-'));
  const store = new FileLeaseStore({ directory, clock, random });
  try {
    await interruptible(io, async (signal) => {
      try {
        await play(store, at, once, io, signal);
      } finally {
        await store.close();
        rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
      }
    });
    return ExitCode.ok;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (error instanceof Interrupted) return exitCodeOfStop(error.signal);
    if (!(error instanceof DemoFailure)) return reportFailure(error, { logLevel: 'info' }, io);
    complain(io, `the demo failed: ${error.message}`);
    return ExitCode.internal;
  }
}

async function play(store: FileLeaseStore, at: ListenAddress | undefined, once: boolean, io: Io, signal: AbortSignal): Promise<void> {
  const { clock, random, env, program } = io;
  const session = () => new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
  const cluster = new ClusterFollower({ clock, random, session: session() });
  const start = (listen: ListenAddress) => startNodeServer({ listen, clock, cluster: async () => cluster, labels: LABELS });
  const server = await (at === undefined ? startSomewhere(start) : start(at));
  const ending = once ? 'It ends when it has shown a take-over.' : 'Ctrl-C ends it.';
  const title = [
    `nodelease demo: ${NODES} tasks, ${NODES} node ids. ${ending}`,
    `Console: ${reachableUrl(server.address)}  Leases, as long as it runs: ${store.url}`,
  ] as const;
  const view = new DemoView(title, clock, io);
  const settings = ['--store', store.url, '--nodes', String(NODES), '--duration', '3s', '--grace', '1s'];
  const story = new DemoStory({
    ...{ session: session(), clock, view, nodes: NODES, once },
    start: (name) => startDemoTask({ name, program, options: settings, env, clock }),
  });
  try {
    await story.play(signal).finally(() => story.end());
  } finally {
    view.end();
    await server.close();
    await cluster.close();
  }
}

/** Starts at the usual address, or at any free port while that is taken. */
async function startSomewhere(start: (at: ListenAddress) => Promise<NodeServer>): Promise<NodeServer> {
  try {
    return await start(DEFAULT_LISTEN_ADDRESS);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return start({ ...DEFAULT_LISTEN_ADDRESS, port: 0 });
  }
}
