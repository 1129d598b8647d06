import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { installed } from '../installed.js';
import { freePort } from '../servers/free-ports.js';
import { localServer, started } from '../servers/local-server.js';

/**
 * The folder of promtool and prometheus, which are got when they are missing.
 *
 * @throws Error when they cannot be: tests are never skipped for that
 */
export function findPrometheus(): Promise<string> {
  return installed(
    'install-prometheus.sh',
    [],
    'put promtool and prometheus on the PATH: https://prometheus.io/download/',
  );
}

/** Runs promtool, the official checker, and returns what it said. */
export async function promtool(
  args: readonly string[],
  input = '',
): Promise<{ readonly code: number | null; readonly output: string }> {
  const tool = spawn(join(await findPrometheus(), 'promtool'), args, { stdio: ['pipe', 'pipe', 'pipe'] });
  tool.stdin.end(input);
  const [out, err, [code]] = await Promise.all([
    text(tool.stdout),
    text(tool.stderr),
    once(tool, 'close') as Promise<[number | null]>,
  ]);
  return { code, output: out + err };
}

/** A Prometheus server under a test's control. */
export interface Prometheus {
  /**
   * What its API answers to `GET /api/v1/<path>`: the field `data`. Throws when that says that it is no
   * success.
   */
  api(path: string): Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * Starts a Prometheus server that scrapes one target, `127.0.0.1:PORT`, every second, with the rules of some
 * files.
 */
export async function startPrometheus(options: {
  readonly target: string;
  readonly rules?: readonly string[];
}): Promise<Prometheus> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: options.rules ?? [],
    scrape_configs: [{ job_name: 'orders', static_configs: [{ targets: [options.target] }] }],
  };
  const server = await started(
    await localServer({
      name: 'Prometheus',
      async launch(folder) {
        // JSON is YAML as well.
        await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
        const args = [
          `--config.file=${folder}/prometheus.yml`,
          `--storage.tsdb.path=${folder}/data`,
          `--web.listen-address=127.0.0.1:${port}`,
        ];
        return { command: join(await findPrometheus(), 'prometheus'), args };
      },
      isReady: async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true,
    }),
  );
  const api = async (path: string) => {
    const { status, data, error } = (await (await fetch(`${url}/api/v1/${path}`)).json()) as Record<
      string,
      unknown
    >;
    if (status !== 'success') throw new Error(`${path}: ${String(error)}`);
    return data;
  };
  return { api, stop: server.dispose };
}
