import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Diagnosis } from '../../../../src/app/cli/doctor/diagnosis.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { killAll, runCli } from '../../../support/processes.js';
import { startEnsemble } from '../../../support/servers/zookeeper-ensemble.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import {
  client,
  closeClients,
  data,
  RIGHTS,
  restrict,
  wholeTree,
} from '../../zookeeper/discovery/discovery-support.js';

let server: string;
let chroot: string;
let connect: string;
let root: ZooKeeperClient;

beforeEach(() => {
  server = inject('zookeeper').connect;
  chroot = uniqueChroot('doctor');
  connect = `${server}${chroot}`;
  root = client(server);
});

afterEach(async () => {
  await killAll();
  await closeClients();
});

async function doctor(zookeeper: string, ...args: string[]) {
  const begun = performance.now();
  const command = runCli(['doctor', '--store', 'memory:', '--zookeeper', zookeeper, ...args]);
  const { code } = await command.exit;
  return { code, answer: command.stdout(), complaints: command.stderr(), tookMs: performance.now() - begun };
}

const sound = { code: 0, complaints: '' };

describe('nodelease doctor with --zookeeper', () => {
  it('finds a sound server sound, and leaves nothing behind', async () => {
    await root.createWithParents(`${chroot}/discovery/nodes/00/08`, data(0, 1), 'ephemeral');
    await root.createWithParents(`${chroot}/discovery/servicetypes/orders/0`, data(0, 1), 'ephemeral');
    const before = await wholeTree(root, chroot);
    const { answer, ...end } = await doctor(connect);
    expect(end).toMatchObject(sound);
    const lines = answer.slice(answer.indexOf('ZooKeeper at')).split('\n');
    expect(lines[0]).toBe(`ZooKeeper at ${connect}`);
    expect(lines[1]).toMatch(/^ {2}ok {5}server [\w.:]+: a session within \d+\.\d ms$/);
    expect(lines[2]).toBe('  ok     session: asked to outlive its connection by 10s, granted 10s');
    expect(lines[3]).toBe(`  ok     chroot ${chroot}: is there`);
    expect(lines[4]).toBe('  ok     rights: znodes can be made, read, changed and removed everywhere');
    expect(lines[5]).toMatch(/^ {2}ok {5}latency: \d+\.\d ms to read, \d+\.\d ms to write \(medians\)$/);
    expect(lines.slice(6)).toEqual(['All is well. There is no cluster at memory: yet.', '']);
    expect(await wholeTree(root, chroot)).toEqual(before);
  });

  it('finds out that a chroot can be made, and leaves it to others to make it', async () => {
    const { answer, ...end } = await doctor(`${connect}/deep/down`);
    expect(end).toMatchObject(sound);
    expect(answer).toContain(`ok     chroot ${chroot}/deep/down: is not there yet, and can be made\n`);
    expect(await root.children(chroot)).toBeUndefined();
  });

  it('shows no node to watchers of the tree', async () => {
    await root.createWithParents(`${chroot}/discovery/nodes/00/08`, data(0, 1), 'ephemeral');
    await root.createWithParents(`${chroot}/discovery/servicetypes/orders/0`, data(0, 1), 'ephemeral');
    const seen: (readonly string[] | undefined)[] = [];
    const folders = ['nodes', 'nodes/00', 'servicetypes', 'servicetypes/orders'];
    const watches = folders.map((folder) =>
      root.watchChildren(`${chroot}/discovery/${folder}`, (names) => seen.push(names)),
    );
    await Promise.all(watches.map(({ first }) => first));
    expect(await doctor(connect)).toMatchObject(sound);
    await root.create(`${chroot}/discovery/nodes/00/09`, data(1, 1), 'ephemeral');
    await expect.poll(() => seen.some((names) => names?.includes('09'))).toBe(true);
    expect([...new Set(seen.flat())].sort()).toEqual(['00', '08', '09', '0', 'orders'].sort());
  });

  it('gives JSON in which no field is ever left out', async () => {
    const { code, answer } = await doctor(connect, '--json', '--zookeeper-session-timeout', '10m');
    expect(code).toBe(0);
    const { ok, zookeeper } = JSON.parse(answer) as Diagnosis;
    expect(ok).toBe(true);
    expect(zookeeper).toEqual({
      zookeeper: connect,
      ok: true,
      findings: expect.arrayContaining([
        expect.objectContaining({ id: 'zookeeper-session', status: 'warning' }),
      ]),
      servers: [{ server, ok: true, latencyMs: expect.any(Number), problem: null }],
      sessionTimeoutMs: { asked: 600_000, granted: 40_000 },
      latencyMs: { read: expect.any(Number), write: expect.any(Number) },
    });
    const failed = await doctor('127.0.0.1:1', '--json');
    expect(failed.code).toBe(69);
    expect((JSON.parse(failed.answer) as Diagnosis).zookeeper).toMatchObject({
      ok: false,
      servers: [
        {
          server: '127.0.0.1:1',
          ok: false,
          latencyMs: null,
          problem: expect.stringContaining('ECONNREFUSED'),
        },
      ],
      sessionTimeoutMs: { asked: 10_000, granted: null },
      latencyMs: null,
    });
    const command = runCli(['doctor', '--store', 'memory:', '--json']);
    await command.exit;
    expect((JSON.parse(command.stdout()) as Diagnosis).zookeeper).toBeNull();
  });

  it('warns of a session that is shorter than the one asked for', async () => {
    const { answer, ...end } = await doctor(connect, '--zookeeper-session-timeout', '2m');
    expect(end).toMatchObject(sound);
    expect(answer).toMatch(
      /warn {3}session: asked to outlive its connection by 2m, granted 40s, by the bounds of the servers\n/,
    );
    expect(answer).toMatch(/\nNo faults, 1 warning\. There is no cluster at memory: yet\.\n$/);
  });

  it('has a separate text for each way in which a server cannot be reached, and ends with 69', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const mute = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const servers: [string, RegExp][] = [
      [
        '127.0.0.1:1',
        /server 127\.0\.0\.1:1: no server listens there \(connect ECONNREFUSED 127\.0\.0\.1:1\)/,
      ],
      ['localhost:1', /server localhost:1: no server listens there \(connect ECONNREFUSED /],
      [
        'no-such-host.invalid:2181',
        /server no-such-host\.invalid:2181: unknown host \(getaddrinfo \w+ no-such-host\.invalid\)/,
      ],
      [
        mute,
        /server [\d.:]+: takes connections, but gives no session: no quorum, read-only, or no ZooKeeper server \(/,
      ],
    ];
    await Promise.all(
      servers.map(async ([address, text]) => {
        const { code, answer, complaints, tookMs } = await doctor(`${address}${chroot}`);
        expect(answer).toMatch(new RegExp(`\n  FAULT  ${text.source}`));
        expect(complaints).toMatch(new RegExp(`^nodelease: ZooKeeper at .*: 1 fault: ${text.source}.*\n$`));
        expect(code).toBe(69);
        // Also where a server never answers.
        expect(tookMs).toBeLessThan(30_000);
      }),
    );
    silent.close();
  });

  it('examines the store all the same, and lists its faults next to those of ZooKeeper', async () => {
    const command = runCli(
      [
        'doctor',
        '--store',
        's3://no-such-bucket/x',
        '--endpoint',
        'http://127.0.0.1:1',
        '--zookeeper',
        '127.0.0.1:1',
      ],
      {
        env: { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' },
      },
    );
    expect((await command.exit).code).toBe(69);
    expect(command.stderr()).toMatch(
      /^nodelease: s3:\/\/no-such-bucket\/x: 1 fault: .*ECONNREFUSED.*; ZooKeeper at 127\.0\.0\.1:1: 1 fault: .*\n$/,
    );
  });
});

describe('nodelease doctor where rights are missing', () => {
  it('names each path where one is missing, and ends with 69', async () => {
    const cases: [folder: string, right: keyof typeof RIGHTS, text: string][] = [
      ['', 'create', '/discovery may not be made'],
      ['/discovery', 'create', '/discovery/probe-\\w+ may not be made'],
      ['/discovery', 'delete', '/discovery/probe-\\w+ may not be removed'],
      ['/discovery/nodes', 'read', '/discovery/nodes may not be listed'],
      ['/discovery/nodes/00', 'create', '/discovery/nodes/00/probe-\\w+ may not be made and removed'],
      ['/discovery/nodes/00', 'delete', '/discovery/nodes/00/probe-\\w+ may not be made and removed'],
      ['/discovery/nodes/00', 'read', '/discovery/nodes/00 may not be listed'],
      [
        '/discovery/servicetypes/a',
        'create',
        '/discovery/servicetypes/a/probe-\\w+ may not be made and removed',
      ],
    ];
    await Promise.all(
      cases.map(async ([folder, right, text]) => {
        const within = uniqueChroot('rights');
        await root.ensurePath(`${within}${folder}`);
        const rights = (Object.keys(RIGHTS) as (keyof typeof RIGHTS)[]).filter((each) => each !== right);
        await restrict(server, `${within}${folder}`, rights);
        const { code, answer, complaints } = await doctor(`${server}${within}`);
        const fault = `${within}${text}: no-auth \\(no credentials are given: --zookeeper-auth\\)`;
        expect(answer).toMatch(new RegExp(`\n  FAULT  rights: ${fault}\n`));
        expect(complaints).toMatch(
          new RegExp(`^nodelease: ZooKeeper at ${server}${within}: 1 fault: ${fault}\n$`),
        );
        expect(code).toBe(69);
      }),
    );
  });

  it('where another user has closed the tree, it knows the right credentials from the wrong ones', async () => {
    const owner = client(server, { auth: 'digest:owner:secret' });
    await owner.createWithParents(`${chroot}/discovery`, '', 'persistent');
    await owner.ensurePath(`${chroot}/discovery/nodes`);
    expect(await doctor(connect, '--zookeeper-auth', 'digest:owner:secret')).toMatchObject(sound);
    const { code, complaints } = await doctor(connect, '--zookeeper-auth', 'digest:owner:wrong');
    expect(code).toBe(69);
    expect(complaints).toMatch(
      /\/discovery\/probe-\w+ may not be made: no-auth \(the credentials of --zookeeper-auth are wrong, or have no right to\)/,
    );
    expect(complaints).not.toContain('owner:wrong');
  });
});

describe('nodelease doctor on an ensemble', () => {
  it('warns of one server of three that is down, and finds a fault when there is no quorum', async () => {
    const ensemble = await startEnsemble(3);
    try {
      const zookeeper = `${ensemble.connect}${chroot}`;
      const whole = await doctor(zookeeper);
      expect(whole).toMatchObject(sound);
      expect(whole.answer.match(/ {2}ok {5}server /g)).toHaveLength(3);
      const [first, second] = ensemble.servers;
      await first?.kill();
      await ensemble.whenServing();
      const { answer, ...end } = await doctor(zookeeper);
      expect(end).toMatchObject(sound);
      expect(answer).toMatch(new RegExp(`warn   server ${first?.connect}: no server listens there`));
      expect(answer.match(/ {2}ok {5}server /g)).toHaveLength(2);
      expect(answer).toMatch(/\nNo faults, 1 warning\. There is no cluster at memory: yet\.\n$/);
      await second?.kill();
      await expect.poll(() => ensemble.servers[2]?.mode()).toBeUndefined();
      const { code, complaints } = await doctor(zookeeper);
      expect(code).toBe(69);
      expect(complaints).toMatch(
        /: 3 faults: .*no server listens there.*no server listens there.*takes connections, but gives no session: no quorum/,
      );
    } finally {
      await ensemble.stop();
    }
  });
});

describe('nodelease doctor that is interrupted', () => {
  it('removes its scratch znodes, and what it made for them', async () => {
    const { hostname, port } = new URL(`tcp://${server}`);
    const proxy = new FaultProxy();
    const proxied = `127.0.0.1:${await proxy.start(hostname, Number(port))}${chroot}`;
    // Slow enough that there is time to interrupt it: each of its many calls takes half a second.
    proxy.delay(250);
    const begun = new Promise<void>((resolve) => {
      root.watchChildren(`${chroot}/discovery`, (names) => names?.length && resolve());
    });
    const command = runCli(['doctor', '--store', 'memory:', '--zookeeper', proxied]);
    await begun;
    command.kill('SIGINT');
    expect(await command.exit).toEqual({ code: 130, signal: null });
    expect(command.stdout()).toBe('');
    expect(await root.children(chroot)).toBeUndefined();
    await proxy.stop();
  });
});
