import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { packageRoot } from '../package-root.js';
import { freePort } from './free-ports.js';

const READY_WITHIN_MS = 120_000;
const STOPPED_WITHIN_MS = 5_000;

/** How a server is started. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A running server. */
export interface ServerProcess {
  readonly endpoint: string;
  /** Stops it and removes its folder. */
  stop(): Promise<void>;
}

/** Where a server is, installed where it is missing. @throws Error when it cannot be */
export async function installed(name: string): Promise<string> {
  const install = join(packageRoot, 'test/support/install/install-store-server.sh');
  return (await promisify(execFile)('sh', [install, name])).stdout.trim();
}

/**
 * Starts an HTTP server on 127.0.0.1 with a folder of its own.
 *
 * @throws Error when it does not answer
 */
export async function startServerProcess(
  name: string,
  launchOf: (folder: string, port: number) => Promise<Launch>,
): Promise<ServerProcess> {
  const folder = await mkdtemp(join(tmpdir(), `nodelease-${name}-`));
  const port = await freePort();
  const { command, args, env } = await launchOf(folder, port);
  const server = spawn(command, args, { cwd: folder, stdio: 'ignore', env: { ...process.env, ...env } });
  const stop = async () => {
    await ended(server);
    await rm(folder, { recursive: true, force: true });
  };
  const endpoint = `http://127.0.0.1:${port}`;
  try {
    await ready(endpoint, server);
  } catch (error) {
    await stop();
    throw new Error(`${name} did not get ready: ${String(error)}`);
  }
  return { endpoint, stop };
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null || server.pid === undefined) return;
  const exit = once(server, 'exit');
  server.kill('SIGTERM');
  const timer = setTimeout(() => server.kill('SIGKILL'), STOPPED_WITHIN_MS);
  await exit;
  clearTimeout(timer);
}

async function ready(url: string, server: ChildProcess): Promise<void> {
  let failure: Error | undefined;
  server.once('error', (error) => {
    failure = error;
  });
  for (const deadline = performance.now() + READY_WITHIN_MS; performance.now() < deadline; await sleep(100)) {
    if (failure) throw failure;
    if (server.exitCode !== null || server.signalCode !== null) throw new Error(`it ended with ${server.exitCode ?? server.signalCode}`);
    // Any answer will do: who is asked without credentials refuses.
    if (await fetch(url).catch(() => undefined)) return;
  }
  throw new Error(`no answer within ${READY_WITHIN_MS} ms`);
}
