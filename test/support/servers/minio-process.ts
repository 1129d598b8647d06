import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { packageRoot } from '../package-root.js';
import { freePort } from './free-ports.js';
import type { RunningServer } from './minio.js';

const INSTALL = join(packageRoot, 'test/support/install/install-minio.sh');
const READY_WITHIN_MS = 30_000;
const STOPPED_WITHIN_MS = 5_000;

// Ends the server and removes its data when the test run dies without doing so: then the pipe on its stdin closes.
// A line on the pipe says that the server has ended already, and that its pid may soon belong to somebody else.
const WATCHER = `
read -r line && exit 0
kill -TERM "$1"
tries=0
while kill -0 "$1" 2>/dev/null && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -KILL "$1" 2>/dev/null
rm -rf "$2"
`;

/**
 * Finds a MinIO binary: the cached one, else one on the PATH, else it builds one into the cache, which takes minutes.
 *
 * @throws Error when there is none and it cannot be built
 */
export async function findMinio(): Promise<string> {
  const run = promisify(execFile);
  const cached = await run('sh', [INSTALL, '--find']).catch(() => undefined);
  if (cached) return cached.stdout.trim();
  const onPath = await run('sh', ['-c', 'command -v minio']).catch(() => undefined);
  if (onPath) return onPath.stdout.trim();
  const install = spawn('sh', [INSTALL], { stdio: ['ignore', 'pipe', 'inherit'] });
  let path = '';
  install.stdout.on('data', (chunk: Buffer) => {
    path += chunk;
  });
  const [code] = (await once(install, 'close')) as [number | null];
  if (code !== 0) throw new Error(`MinIO could not be built (exit code ${code}); the reason stands above`);
  return path.trim();
}

/**
 * Starts a MinIO binary on 127.0.0.1 with a folder and credentials of its own. It ends with this process, whatever ends that.
 *
 * @throws Error with the end of its log when it does not get ready
 */
export async function startMinioProcess(binary: string): Promise<RunningServer> {
  const attempts = 3;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(binary);
    } catch (error) {
      // Between finding a free port and MinIO's binding it somebody else may have taken it.
      if (attempt === attempts) throw error;
    }
  }
}

async function startOnce(binary: string): Promise<RunningServer> {
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-minio-'));
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const accessKeyId = randomBytes(8).toString('hex');
  const secretAccessKey = randomBytes(16).toString('hex');
  const logFile = join(folder, 'minio.log');
  const log = openSync(logFile, 'a');
  // In a session of its own, so that Ctrl-C on the test run leaves the ending to the teardown or to the watcher.
  const server = spawn(binary, ['server', '--address', `127.0.0.1:${port}`, join(folder, 'data')], {
    detached: true,
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder,
      MINIO_ROOT_USER: accessKeyId,
      MINIO_ROOT_PASSWORD: secretAccessKey,
      MINIO_BROWSER: 'off',
      MINIO_UPDATE: 'off',
    },
  });
  closeSync(log);
  const ended = once(server, 'exit').catch(() => undefined);
  const watcher = spawn('/bin/sh', ['-c', WATCHER, 'watcher', String(server.pid), folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.stdin.on('error', () => {});
  void ended.then(() => watcher.stdin.end('ended\n'));
  // Neither may hold up the end of the test run; the watcher then does the rest.
  server.unref();
  watcher.unref();

  const end = async () => {
    server.kill('SIGTERM');
    const timer = setTimeout(() => server.kill('SIGKILL'), STOPPED_WITHIN_MS);
    if (server.pid !== undefined) await ended;
    clearTimeout(timer);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await ready(`${endpoint}/minio/health/ready`, server);
  } catch (error) {
    const text = await readFile(logFile, 'utf8').catch(() => '');
    await end();
    throw new Error(`${binary} did not get ready: ${String(error)}\n${text.slice(-2000)}`);
  }
  let stopping: Promise<void> | undefined;
  return {
    endpoint,
    region: 'us-east-1',
    accessKeyId,
    secretAccessKey,
    description: `${endpoint}, process ${server.pid} of ${binary}`,
    stop: () => {
      stopping ??= end();
      return stopping;
    },
  };
}

async function ready(url: string, server: ChildProcess): Promise<void> {
  let failure: Error | undefined;
  server.once('error', (error) => {
    failure = error;
  });
  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline) {
    if (failure) throw failure;
    if (server.exitCode !== null || server.signalCode !== null) throw new Error(`it ended with ${server.exitCode ?? server.signalCode}`);
    const reply = await fetch(url).catch(() => undefined);
    if (reply?.ok) return;
    await sleep(50);
  }
  throw new Error(`no answer within ${READY_WITHIN_MS} ms`);
}
