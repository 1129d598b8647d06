import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { installed } from '../../../support/installed.js';
import { startCuratorPeer } from '../../../support/peers/curator-peer.js';
import { stopJavaPeers } from '../../../support/peers/java-peer.js';
import { killAll, runCli, runProcess } from '../../../support/processes.js';
import { freePort } from '../../../support/servers/free-ports.js';
import { startZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../../zookeeper/discovery/discovery-support.js';
import { listening, outcome, register } from './dns-support.js';

// Clients of others: dig, the C library by way of dnsmasq, and nginx.

let [dig, dnsmasq, nginx]: string[] = [];
let connect: string;
let folder: string;

beforeAll(async () => {
  const paths = await installed('install-dns-clients.sh', [], 'put dig, dnsmasq and nginx on the PATH');
  [dig, dnsmasq, nginx] = paths.split('\n');
});

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('dns')}`;
  folder = mkdtempSync(join(tmpdir(), 'nodelease-dns-'));
});

afterEach(async () => {
  await Promise.all([stopJavaPeers(), killAll()]);
  await closeClients();
  rmSync(folder, { recursive: true });
});

const serve = (...options: string[]) =>
  listening(runCli(['dns', '--zookeeper', connect, '--listen', '127.0.0.1:0', ...options]));

/** The output of a program that ends with 0. */
async function output(command: string | undefined, ...args: string[]): Promise<string> {
  const run = runProcess(command ?? '', args);
  expect(await run.exit, run.stderr()).toEqual({ code: 0, signal: null });
  return run.stdout();
}

async function dug(address: string, ...args: string[]): Promise<string> {
  return output(dig, '@127.0.0.1', '-p', address.split(':')[1] ?? '', ...args);
}

const size = (text: string) => Number(/MSG SIZE {2}rcvd: (\d+)/.exec(text)?.[1]);

async function register40(): Promise<void> {
  const zookeeper = client(connect);
  await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      register(zookeeper, 'orders', `i${at}`, { address: `10.0.0.${at}`, port: 8_000 + at }),
    ),
  );
}

describe('dig', () => {
  it('gets addresses, flags and EDNS as the standards have them', async () => {
    await register40();
    const address = await serve();
    const plain = await dug(address, 'orders.service.nodelease', 'A');
    expect(plain).toMatch(
      /status: NOERROR.*\n;; flags: qr aa rd; QUERY: 1, ANSWER: 8, AUTHORITY: 0, ADDITIONAL: 1/,
    );
    expect(plain).toContain('; EDNS: version: 0, flags:; udp: 1232');
    const none = await dug(address, '+noedns', 'other.service.nodelease', 'A');
    expect(none).toMatch(/status: NXDOMAIN.*\n.*ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 0/);
    expect(none).toMatch(
      /^nodelease\.\s+1\s+IN\s+SOA\s+ns\.nodelease\. hostmaster\.nodelease\. 1 3600 600 86400 1$/m,
    );
    const later = await dug(address, '+edns=1', '+noednsneg', 'orders.service.nodelease', 'A');
    expect(later).toMatch(/status: BADVERS.*\n.*ANSWER: 0/);
    expect(later).toContain('; EDNS: version: 0,');
    expect(await dug(address, 'example.com', 'A')).toContain('status: REFUSED');
    expect(await dug(address, 'nodelease', 'NS', '+short')).toBe('ns.nodelease.\n');
    expect(await dug(address, '+opcode=notify', 'nodelease', 'SOA')).toContain('status: NOTIMP');
    expect(await dug(address, 'CH', 'TXT', 'version.bind')).toContain('status: REFUSED');
  });

  it('gets 40 instances cut short by UDP, which says so, and all of them by TCP', async () => {
    await register40();
    const address = await serve();
    for (const [option, bytes] of [
      ['+noedns', 512],
      ['+bufsize=512', 512],
      ['+bufsize=4096', 1_232],
    ] as const) {
      const cut = await dug(address, '+ignore', option, 'orders.service.nodelease', 'SRV');
      expect(cut).toMatch(/flags: qr aa tc rd;/);
      expect(size(cut)).toBeGreaterThan(bytes / 2);
      expect(size(cut)).toBeLessThanOrEqual(bytes);
    }
    const whole = await dug(address, 'orders.service.nodelease', 'SRV');
    expect(whole).toContain(';; Truncated, retrying in TCP mode.');
    expect(whole).toMatch(/flags: qr aa rd;.* ANSWER: 40, AUTHORITY: 0, ADDITIONAL: 41/);
    const both = await dug(
      address,
      ...['+tcp', '+keepopen', '+short', '_orders._tcp.nodelease', 'SRV', '0a000007.addr.nodelease', 'A'],
    );
    expect(both.trim().split('\n')).toHaveLength(41);
    expect(both).toMatch(/^10\.0\.0\.7$/m);
  });
});

it('gives a host name of a Java service as it is, with its addresses', async () => {
  // Java makes no chroot.
  await client(connect).createWithParents('/services', '', 'persistent');
  const java = await startCuratorPeer({ connect, basePath: '/services' });
  await java.register({ name: 'orders', id: 'java', address: 'localhost', port: 8_080 });
  const address = await serve();
  expect(await dug(address, '+short', 'orders.service.nodelease', 'A')).toBe('localhost.\n127.0.0.1\n');
  expect(await dug(address, '+short', '_orders._tcp.nodelease', 'SRV')).toBe('1 1 8080 localhost.\n');
});

it('answers the same while ZooKeeper is away, then SERVFAIL, and again when it is back', async () => {
  const server = await startZooKeeperProcess();
  try {
    connect = server.connect;
    await register(client(connect), 'orders', 'one', { address: '10.0.0.7', port: 80 });
    const address = await serve('--dns-stale', '8s');
    expect(await outcome(address, 'orders.service.nodelease')).toBe(1);
    await server.kill();
    const seen: unknown[] = [];
    const both = async () => {
      const now = [
        await outcome(address, 'orders.service.nodelease'),
        await outcome(address, 'other.service.nodelease'),
      ];
      seen.push(now.join());
      return now;
    };
    await expect.poll(both, { interval: 200 }).toEqual(['SERVFAIL', 'SERVFAIL']);
    // Seconds of the same answers, and then nothing else: at the bound, one may be known a little longer.
    expect(seen.filter((now) => now === '1,NXDOMAIN').length).toBeGreaterThan(10);
    expect(new Set(seen).size).toBeLessThanOrEqual(3);
    await server.start();
    await expect.poll(both).toEqual([1, 'NXDOMAIN']);
  } finally {
    await server.dispose();
  }
});

it('is found by every program behind dnsmasq: getent', async () => {
  await register(client(connect), 'orders', 'one', { address: '10.0.0.7', port: 80 });
  await register(client(connect), 'byname', 'one', { address: 'localhost', port: 80 });
  const address = await serve();
  // resolv.conf has no ports: an address that only this test has.
  const own = `127.53.${(process.pid >> 8) & 0xff}.${process.pid & 0xff}`;
  const forwarder = runProcess(dnsmasq ?? '', [
    ...[
      '--keep-in-foreground',
      '--conf-file=/dev/null',
      '--no-resolv',
      '--no-hosts',
      '--user=root',
      '--pid-file=',
    ],
    ...[`--listen-address=${own}`, '--bind-interfaces', '--log-facility=-', '--log-queries'],
    `--server=/nodelease/${address.replace(':', '#')}`,
  ]);
  await forwarder.waitForOutput(/started, version/);
  const resolv = join(folder, 'resolv.conf');
  writeFileSync(resolv, `nameserver ${own}\n`);
  const getent = (name: string) =>
    output(
      'unshare',
      '--mount',
      'sh',
      '-c',
      `mount --bind ${resolv} /etc/resolv.conf && getent ahostsv4 ${name}`,
    );
  expect(await getent('orders.service.nodelease')).toMatch(/^10\.0\.0\.7\s+STREAM/);
  expect(await getent('byname.service.nodelease')).toMatch(/^127\.0\.0\.1\s+STREAM localhost/);
});

it('lets nginx follow a node id to the task that takes it over', async () => {
  const [port, front] = [await freePort(), await freePort()];
  const address = await serve();
  const backend = (host: string) =>
    `require('node:http').createServer((_, answer) => answer.end('${host}')).listen(${port}, '${host}')`;
  const task = (host: string) =>
    runCli([
      ...[
        'run',
        '--store',
        `file:${folder}/store`,
        '--nodes',
        '1',
        '--duration',
        '3s',
        '--zookeeper',
        connect,
      ],
      ...['--zookeeper-session-timeout', '2s', '--address', host, '--port', String(port)],
      ...['--', process.execPath, '-e', backend(host)],
    ]);
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/nginx.pid; error_log stderr; user root;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ')}
  resolver ${address} valid=1s;
  server {
    listen 127.0.0.1:${front};
    location / {
      set $holder 0.node.nodelease;
      proxy_pass http://$holder:${port};
      proxy_connect_timeout 1s;
    }
  }
}
`,
  );
  runProcess(nginx ?? '', ['-c', join(folder, 'nginx.conf'), '-p', folder]);
  const page = async () => {
    const response = await fetch(`http://127.0.0.1:${front}/`).catch(() => undefined);
    return response?.ok ? response.text() : response?.status;
  };
  const first = task('127.0.0.7');
  await expect.poll(page).toBe('127.0.0.7');
  task('127.0.0.8');
  first.kill('SIGKILL');
  await expect.poll(page, { timeout: 60_000 }).toBe('127.0.0.8');
});
