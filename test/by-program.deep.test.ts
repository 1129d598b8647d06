import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, afterEach, describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import { installed } from './support/installed.js';
import { packageRoot } from './support/package-root.js';
import { compileSpringPrograms, JAVA_OPTIONS } from './support/peers/interop.js';
import { startLinePeer, stopLinePeers } from './support/peers/line-peer.js';
import { cliFile, killAll, runProcess, type TestProcess } from './support/processes.js';
import { freePort } from './support/servers/free-ports.js';
import { startStoreServer } from './support/servers/store-servers.js';
import { uniqueChroot } from './support/zookeeper.js';

// The recipes of docs/guides/by-program.md: its files and commands, on a folder as the store. Redis, node-cron,
// Spring, Java and Terraform are themselves; in place of the other programs there are stand-ins, which print
// their arguments and some variables.

const recipes = new Map(
  readFileSync(join(packageRoot, 'docs/guides/by-program.md'), 'utf8')
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);
const tried = new Set<string>();
const folders: string[] = [];

afterEach(async () => {
  await Promise.all([killAll(), stopLinePeers()]);
});
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A recipe of the page, in a folder with its named files. */
class Recipe {
  readonly #blocks: readonly string[];
  readonly #replace: (text: string) => string;
  readonly env: Record<string, string>;

  constructor(
    heading: string,
    readonly folder: string,
    more: Readonly<Record<string, string>> = {},
  ) {
    const replaced = Object.entries({ 's3://my-bucket': `file:${join(folder, 'store')}`, ...more });
    this.#replace = (text) => replaced.reduce((now, [from, to]) => now.replaceAll(from, to), text);
    this.#blocks = [...(recipes.get(heading) ?? '').matchAll(/^```[^\n]*\n([\s\S]*?)^```$/gm)].map(
      ([, block = '']) => this.#replace(block),
    );
    for (const block of this.#blocks) {
      const name = /^(?:#!.*\n)?(?:#|\/\/) (\S+\.\w+)$/m.exec(block)?.[1];
      if (name !== undefined) this.write(name, block);
    }
    mkdirSync(join(folder, 'bin'));
    symlinkSync(cliFile, join(folder, 'bin/nodelease'));
    this.env = { PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}` };
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text, { mode: 0o755 });
  }

  /** Prints how it was called, and stays until it is stopped, or ends. */
  standIn(name: string, end = 'exec sleep 600'): void {
    const variables = "env | grep -E '^(NODE_ID|LOCK_TOKEN|SHARD)' | sort";
    this.write(name, `#!/bin/sh\necho "${name.replace('bin/', '')} $*"\n${variables}\necho ready\n${end}\n`);
  }

  block(pattern: RegExp): string {
    return this.#blocks.find((block) => pattern.test(block)) ?? expect.fail(`no block has ${pattern}`);
  }

  /** Runs the command of the page that begins so. */
  run(beginsWith: string, env: Readonly<Record<string, string>> = {}, stdin = ''): TestProcess {
    const typed = this.#blocks.flatMap((block) =>
      [...block.matchAll(/^\$ (.*)$/gm)].map(([, it = '']) => it),
    );
    const command = typed.find((it) => it.startsWith(beginsWith)) ?? expect.fail(`no ${beginsWith}`);
    const exports = typed.filter((it) => it.startsWith('export ')).map((it) => `${it}; `);
    return this.exec(['bash', '-c', `${exports.join('')}exec ${command}`], env, stdin);
  }

  exec(command: readonly string[], env: Readonly<Record<string, string>> = {}, stdin = ''): TestProcess {
    const [program = '', ...args] = command;
    return runProcess(program, args, { cwd: this.folder, env: { ...this.env, ...env }, stdin });
  }
}

function recipe(
  heading: string,
  promise: string,
  test: (open: (more?: Readonly<Record<string, string>>) => Recipe, folder: string) => Promise<void>,
  place = tmpdir(),
): void {
  tried.add(heading);
  it(`${heading}: ${promise}`, async () => {
    mkdirSync(place, { recursive: true });
    const folder = mkdtempSync(join(place, 'by-program-'));
    folders.push(folder);
    await test((more) => new Recipe(heading, folder, more), folder);
  });
}

const values = (processes: readonly TestProcess[], pattern: RegExp) =>
  processes.map((it) => pattern.exec(it.stdout())?.[1]).sort();
const ready = (processes: readonly TestProcess[]) =>
  Promise.all(processes.map((it) => it.waitForOutput(/^ready$/m)));
const SHORT = { NODELEASE_DURATION: '3s' };

describe('the recipes by program', () => {
  recipe('Redis Streams', 'a killed worker’s message is finished under its name', async (open, folder) => {
    const server = await installed('install-redis.sh', [], 'put redis-server and redis-cli on the PATH');
    const port = String(await freePort());
    const redis = runProcess(server, ['--port', port, '--save', '', '--dir', folder]);
    await redis.waitForOutput(/Ready to accept connections/);
    const client = (...args: string[]) =>
      execFileSync('redis-cli', ['-e', '-p', port, ...args], { encoding: 'utf8' });
    const example = open();
    example.write('bin/redis-cli', `#!/bin/sh\nexec ${join(server, '../redis-cli')} -p ${port} "$@"\n`);
    example.write(
      'handle',
      '#!/bin/sh\n[ -e first ] || { touch first; echo ready; exec sleep 600; }\necho "$CONSUMER $1" >>handled\n',
    );
    client('XGROUP', 'CREATE', 'orders', 'workers', '0', 'MKSTREAM');
    client('XADD', 'orders', '*', 'order', 'first');
    const killed = example.run('nodelease run', SHORT);
    await ready([killed]);
    const name = client('XINFO', 'CONSUMERS', 'orders', 'workers').split('\n')[1];
    killed.kill('SIGKILL');
    client('XADD', 'orders', '*', 'order', 'second');
    for (let worker = 0; worker < 3; worker += 1) example.run('nodelease run', SHORT);
    await expect
      .poll(() => client('XPENDING', 'orders', 'workers').split('\n')[0], { timeout: 60_000 })
      .toBe('0');
    expect(readFileSync(join(folder, 'handled'), 'utf8')).toMatch(new RegExp(`^${name} [^]*first`, 'm'));
    const names = () =>
      client('XINFO', 'CONSUMERS', 'orders', 'workers')
        .match(/worker-\d/g)
        ?.sort();
    await expect.poll(names).toEqual(['worker-0', 'worker-1', 'worker-2']);
  });

  recipe(
    'Kafka brokers without disks',
    'each broker has another node.id, none of a controller',
    async (open, folder) => {
      mkdirSync(join(folder, 'kafka/bin'), { recursive: true });
      const example = open({ '/opt/automq/kafka': join(folder, 'kafka') });
      example.standIn('kafka/bin/kafka-server-start.sh');
      const brokers = [1, 2].map(() => example.run('nodelease run', { CLUSTER_ID: 'a-cluster' }));
      await ready(brokers);
      const ids = values(brokers, /--override node\.id=(1\d\d) /);
      expect(new Set(ids).size).toBe(2);
      expect(ids).not.toContain(undefined);
      expect(brokers[0]?.stdout()).toMatch(
        /kraft\/broker\.properties --override cluster\.id=a-cluster .* advertised\.listeners=PLAINTEXT:\/\/[\d.:a-f ]+:9092\n/,
      );
    },
  );

  recipe('Discord shards', 'four bots have the shards 0 to 3 of 4', async (open) => {
    const example = open();
    example.write(
      'bot.js',
      'const { SHARDS, SHARD_COUNT } = process.env; console.log(`shard`, SHARDS, `of`, SHARD_COUNT); console.log(`ready`); setInterval(() => {}, 1e6);',
    );
    const bots = [1, 2, 3, 4].map(() => example.run('nodelease run'));
    await ready(bots);
    expect(values(bots, /^(shard .*)$/m)).toEqual([0, 1, 2, 3].map((shard) => `shard ${shard} of 4`));
  });

  recipe('Terraform', 'applies under the lock', async (open) => {
    const example = open();
    const found = process.env.PATH?.split(delimiter).some((path) => existsSync(join(path, 'terraform')));
    if (found) {
      example.write('main.tf', 'resource "terraform_data" "one" { input = "one" }\n');
      const init = example.exec(['terraform', 'init'], { CHECKPOINT_DISABLE: '1' });
      expect((await init.exit).code, init.stderr()).toBe(0);
    } else example.standIn('bin/terraform', 'exit 0');
    const apply = example.run('nodelease lock', { CHECKPOINT_DISABLE: '1' }, 'yes\n');
    expect((await apply.exit).code, apply.stderr()).toBe(0);
    expect(apply.stdout()).toMatch(/Apply complete! Resources: 1 added|terraform apply -lock=false/);
  });

  recipe(
    'node-cron',
    'one server runs the jobs, and another one when it has ended',
    async (open) => {
      const asked = "(console.error('asked'), term?.isValid() ?? false)";
      const example = open({ '0 3 * * *': '* * * * * *', 'term?.isValid() ?? false': asked });
      const one = example.exec([process.execPath, 'server.js']);
      await one.waitForOutput(/report 1n/);
      const two = example.exec([process.execPath, 'server.js']);
      await two.waitForOutput(/asked\nasked/);
      expect(two.stdout()).toBe('');
      one.kill('SIGTERM');
      expect(await one.exit).toEqual({ code: 0, signal: null });
      await two.waitForOutput(/report 2n/);
      two.kill('SIGTERM');
      expect(await two.exit, two.stderr()).toEqual({ code: 0, signal: null });
      example.standIn('bin/supercronic');
      const schedulers = [example.run('nodelease lock'), example.run('nodelease lock')];
      const first = await Promise.race(schedulers.map((it) => it.waitForOutput(/supercronic .*/)));
      expect(first[0]).toBe('supercronic /etc/crontab');
      expect(schedulers.filter((it) => it.stdout() !== '')).toHaveLength(1);
    },
    // Below the package, where node-cron is, and which finds itself there by its name.
    join(packageRoot, '.harness/by-program'),
  );

  recipe('SQLite with Litestream', 'restores and replicates under the lock', async (open, folder) => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, 'data/old'), '');
    const example = open({ '/data/app': join(folder, 'data') });
    example.standIn('bin/litestream', '[ "$1" = restore ] || exec sleep 600');
    const task = example.run('nodelease lock');
    await task.waitForOutput(/litestream replicate.*\nLOCK_TOKEN=1\n/);
    const app = join(folder, 'data/app.db');
    expect(task.stdout()).toContain(`litestream restore -if-replica-exists -o ${app} s3://my-backups/app\n`);
    expect(task.stdout()).toContain(`litestream replicate -exec node server.js ${app} s3://my-backups/app\n`);
    expect(existsSync(join(folder, 'data/old'))).toBe(false);
  });

  recipe('A scheduled job on ECS', 'a second task ends with 75 while the job runs', async (open) => {
    const example = open({ '/app/node_modules/.bin/': '' });
    example.standIn('report.sh');
    const container = JSON.parse(example.block(/"entryPoint"/));
    const env = Object.fromEntries(
      container.environment.map(({ name, value }: { name: string; value: string }) => [name, value]),
    );
    const start = () => example.exec([...container.entryPoint, ...container.command], env);
    const first = start();
    await ready([first]);
    const second = start();
    expect((await second.exit).code).toBe(75);
    expect(second.stdout()).toBe('');
  });

  recipe('lnd', 'a second task starts it when the first one has ended', async (open) => {
    const example = open();
    example.standIn('bin/lnd');
    const one = example.run('nodelease lock', { LND_DSN: 'postgres://lnd' });
    await ready([one]);
    const two = example.run('nodelease lock', { LND_DSN: 'postgres://lnd' });
    expect(one.stdout()).toContain('lnd --db.backend=postgres --db.postgres.dsn=postgres://lnd\n');
    one.kill('SIGTERM');
    await one.exit;
    await two.waitForOutput(/LOCK_TOKEN=2/);
  });

  recipe(
    'Docker Compose and Swarm',
    'its command and variables give each replica another id',
    async (open) => {
      const example = open();
      example.standIn('orders');
      const { command, deploy, environment } = parse(example.block(/^services:/m)).services.orders;
      const replicas = Array.from({ length: deploy.replicas }, () =>
        example.exec(['nodelease', ...command], environment),
      );
      await ready(replicas);
      expect(new Set(values(replicas, /^NODE_ID=(\d+)$/m)).size).toBe(3);
    },
  );

  recipe(
    'Azure Container Apps',
    'its arguments and variables give an id, and the probe finds it ready',
    async (open) => {
      const azurite = await startStoreServer('azurite');
      try {
        const { url } = await azurite.createBucket();
        const port = await freePort();
        const example = open({ 'azblob://myaccount/leases': url, '0.0.0.0:7070': `0.0.0.0:${port}` });
        example.standIn('orders');
        const [container] = parse(example.block(/^properties:/m)).properties.template.containers;
        const env: { name: string; value: string }[] = container.env;
        const given = Object.fromEntries(env.map(({ name, value }) => [name, value]));
        const task = example.exec(['nodelease', ...container.args], { ...azurite.env, ...given });
        await ready([task]);
        expect(task.stdout()).toContain('NODE_ID=0');
        const answer = await fetch(`http://127.0.0.1:${port}${container.probes[0].httpGet.path}`);
        expect(answer.status).toBe(200);
        task.kill('SIGTERM');
        await task.exit;
      } finally {
        await azurite.stop();
      }
    },
  );

  recipe('A Spring application', 'reads what is published, follows it, and has its node id', async (open) => {
    const connect = `${inject('zookeeper').connect}${uniqueChroot('by-program')}`;
    const example = open({ 'zk1:2181,zk2:2181': connect });
    const set = async (...changes: string[]) => {
      const args = ['config', 'set', '--app', 'orders', '--zookeeper', connect, ...changes];
      const { exit, stderr } = example.exec(['nodelease', ...args]);
      expect((await exit).code, stderr()).toBe(0);
    };
    const published = example.run('nodelease config set');
    expect((await published.exit).code, published.stderr()).toBe(0);
    await set(`who=node \${orders.node-id}`);
    // The file of the page on the class path; the arguments are defaults, which it replaces.
    const classPath = [await compileSpringPrograms(), example.folder].join(delimiter);
    const java = ['java', ...JAVA_OPTIONS, '-cp', classPath, 'SpringConfigPeer', '127.0.0.1:1', 'another'];
    const run = ['run', '--store', `file:${join(example.folder, 'store')}`, '--nodes', '4', '--', ...java];
    const peer = await startLinePeer({ name: 'Spring', command: process.execPath, args: [cliFile, ...run] });
    expect(await peer.call('properties')).toEqual({ 'db.pool-size': '10', who: 'node 0' });
    await set('db.pool-size=15');
    await expect
      .poll(() => peer.call('properties'), { timeout: 30_000 })
      .toEqual({ 'db.pool-size': '15', who: 'node 0' });
    await expect.poll(() => JSON.stringify(peer.events)).toContain('db.pool-size');
    await peer.stop();
  });

  recipe(
    'nodelease in a JVM image',
    'its copied files and its entry point run a JVM with an id',
    async (open, folder) => {
      const example = open();
      const place = join(folder, 'opt/nodelease');
      mkdirSync(join(place, 'bin'), { recursive: true });
      for (const name of ['dist', 'package.json'])
        cpSync(join(packageRoot, name), join(place, name), {
          recursive: true,
          // Other tests start the command meanwhile, and write there.
          filter: (path) => !path.includes('compile-cache'),
        });
      symlinkSync('../dist/cli/nodelease.js', join(place, 'bin/nodelease'));
      cpSync(process.execPath, join(place, 'bin/node'));
      example.write(
        'Main.java',
        'class Main { public static void main(String[] a) { System.out.println("node " + System.getenv("NODE_ID")); } }',
      );
      const [entry, command] = ['ENTRYPOINT', 'CMD'].map((name) =>
        JSON.parse(new RegExp(`^${name} (.*)$`, 'm').exec(example.block(/^ENTRYPOINT/m))?.[1] ?? '[]'),
      );
      expect(command.slice(0, 2)).toEqual(['java', '-jar']);
      const task = example.exec(['env', ...entry, 'java', 'Main.java'], {
        PATH: `${join(place, 'bin')}:/usr/bin:/bin`,
        NODELEASE_STORE: `file:${join(folder, 'store')}`,
      });
      expect((await task.exit).code, task.stderr()).toBe(0);
      expect(task.stdout()).toBe('node 0\n');
    },
  );

  it('are all tried', () => {
    expect([...tried].sort()).toEqual([...recipes.keys()].sort());
  });
});
