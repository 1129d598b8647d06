import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { packageRoot } from '../package-root.js';
import { freePort } from '../servers/free-ports.js';

const INSTALL = join(packageRoot, 'test/support/install/install-prometheus.sh');
const READY_WITHIN_MS = 30_000;

/**
 * The folder of promtool and prometheus, which are got when they are missing.
 *
 * @throws Error when they cannot be: tests are never skipped for that
 */
export async function findPrometheus(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('sh', [INSTALL]);
    return stdout.trim();
  } catch (error) {
    throw new Error(`Tests need promtool and prometheus: ${(error as { stderr?: string }).stderr ?? String(error)}`);
  }
}

/** Runs promtool, the official checker, and tells what it said. */
export async function promtool(args: readonly string[], input = ''): Promise<{ readonly code: number | null; readonly output: string }> {
  const tool = spawn(join(await findPrometheus(), 'promtool'), args, { stdio: ['pipe', 'pipe', 'pipe'] });
  tool.stdin.end(input);
  const [out, err, [code]] = await Promise.all([text(tool.stdout), text(tool.stderr), once(tool, 'close') as Promise<[number | null]>]);
  return { code, output: out + err };
}

/** A Prometheus server under a test's control. */
export interface Prometheus {
  /** What its API answers to `GET /api/v1/<path>`: the field `data`. Throws when that says that it is no success. */
  api(path: string): Promise<unknown>;
  stop(): Promise<void>;
}

/** Starts a Prometheus server that scrapes one target, `127.0.0.1:PORT`, every second, with the rules of some files. */
export async function startPrometheus(options: { readonly target: string; readonly rules?: readonly string[] }): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-prometheus-'));
  const port = await freePort();
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: options.rules ?? [],
    scrape_configs: [{ job_name: 'orders', static_configs: [{ targets: [options.target] }] }],
  };
  // JSON is YAML as well.
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const server = spawn(
    join(await findPrometheus(), 'prometheus'),
    [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const complaints = text(server.stderr);
  const closed = once(server, 'close');
  const stop = async () => {
    server.kill('SIGKILL');
    await closed;
    await rm(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await ready(server, `${url}/-/ready`, complaints);
  } catch (error) {
    await stop();
    throw error;
  }
  const api = async (path: string) => {
    const { status, data, error } = (await (await fetch(`${url}/api/v1/${path}`)).json()) as Record<string, unknown>;
    if (status !== 'success') throw new Error(`${path}: ${String(error)}`);
    return data;
  };
  return { api, stop };
}

async function ready(server: ChildProcess, url: string, complaints: Promise<string>): Promise<void> {
  for (const deadline = Date.now() + READY_WITHIN_MS; ; ) {
    if (server.exitCode !== null || server.signalCode !== null) throw new Error(`Prometheus has ended: ${await complaints}`);
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    if (Date.now() > deadline) throw new Error(`Prometheus was not ready within ${READY_WITHIN_MS} ms`);
    await sleep(50);
  }
}
