import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { readFleet } from '../../../../src/zookeeper/configuration/fleet.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { freePorts } from '../../../support/servers/free-ports.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { keys, publisher } from './config-scene.js';

const NODES = 20;
const SEEN = { timeout: 90_000, interval: 100 };

let connect: string;
let log: string;
let store: string;

beforeEach(async () => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('rolling')}`;
  log = join(newFolder(), 'log');
  store = `file:${newFolder()}`;
  appendFileSync(log, '');
  await publisher(client(connect)).publish(keys({ greeting: '1' }));
});
afterEach(async () => {
  await Promise.all([killAll(), closeClients()]);
  removeFolders();
});

/**
 * A command that says when it begins, and when it ends, which takes it a while. Asked to end, it serves on
 * for a moment: the turn is given on when the one before has been started, which may say so a little later.
 */
const SERVER = (file: string) => {
  const say = (word: string) => `echo "${word} $NODE_ID $NODE_ID_VERSION $GREETING" >> ${file}`;
  return `trap 'sleep 2; ${say('down')}; sleep 0.1; exit 0' TERM; ${say('up')}; while :; do sleep 0.1; done`;
};

function start(...options: string[]): TestProcess[] {
  const settings = [
    '--store',
    store,
    '--nodes',
    `${NODES}`,
    '--zookeeper',
    connect,
    '--config',
    'shop,prod',
    '--on-config-change',
    'restart',
  ];
  return Array.from({ length: NODES }, () =>
    runCli(['run', ...settings, ...options, '--', 'sh', '-c', SERVER(log)]),
  );
}

const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
const up = (greeting: string) =>
  lines().filter((line) => line.startsWith('up ') && line.endsWith(` ${greeting}`)).length;

/** The most that were down at a time: from when all were up, by the order of their lines. */
function mostDown(all: readonly string[]): number {
  let down = 0;
  let most = 0;
  for (const line of all.slice(NODES)) {
    down += line.startsWith('down') ? 1 : -1;
    most = Math.max(most, down);
  }
  return most;
}

test(`of ${NODES} nodes that restart one by one, never two are down at once, and each keeps its lease`, async () => {
  start('--config-one-by-one');
  await expect.poll(() => up('1'), SEEN).toBe(NODES);
  await publisher(client(connect)).publish(keys({ greeting: '2' }));
  await expect.poll(() => up('2'), SEEN).toBe(NODES);
  const all = lines();
  expect(mostDown(all)).toBe(1);
  const holders = (greeting: string) =>
    all
      .filter((line) => line.startsWith('up') && line.endsWith(` ${greeting}`))
      .map((line) => line.split(' ').slice(1, 3).join('@'));
  expect(holders('2').sort()).toEqual(holders('1').sort());
  const revisions = async () =>
    (await readFleet(client(connect), '/config', {}, 'shop,prod'))[0]?.nodes.map(
      (each) => each.revisions['shop,prod'],
    );
  await expect.poll(revisions, SEEN).toEqual(Array.from({ length: NODES }, () => 2));
});

test('without the turns, and with no spread, several are down at once: the count above can fail', async () => {
  start('--config-spread', '0s');
  await expect.poll(() => up('1'), SEEN).toBe(NODES);
  await publisher(client(connect)).publish(keys({ greeting: '2' }));
  await expect.poll(() => up('2'), SEEN).toBe(NODES);
  expect(mostDown(lines())).toBeGreaterThan(1);
});

test('the node whose command does not pass its check keeps the others from restarting, until a publish mends it', async () => {
  const zookeeper = client(connect);
  const ports = await freePorts(3);
  const listen = "require('node:net').createServer((s) => s.end()).listen(+process.argv[1])";
  const settings = [
    '--zookeeper',
    connect,
    '--config',
    'shop,prod',
    '--on-config-change',
    'restart',
    '--config-one-by-one',
  ];
  const nodes = ports.map((port, id) => {
    const check = [
      '--service',
      'shop',
      '--port',
      `${port}`,
      '--check',
      `tcp:${port}`,
      '--check-interval',
      '100ms',
    ];
    const script = `[ "$GREETING" = bad ] && exec sleep 600; exec node -e "${listen}" ${port}`;
    return runCli(['run', '--node-id', `${id}`, ...settings, ...check, '--', 'sh', '-c', script]);
  });
  /** What each node has logged since its last restart, by the count of its restarts. */
  const since = () => nodes.map((node) => node.stderr().split('to start it with its new configuration'));
  const announced = () =>
    since().filter((parts) => parts.at(-1)?.includes('the service is announced')).length;
  await expect.poll(announced, SEEN).toBe(3);
  await publisher(zookeeper).publish(keys({ greeting: 'bad' }));
  await expect
    .poll(async () => (await zookeeper.children('/config/.nodelease/turns/shop,prod'))?.length, SEEN)
    .toBe(3);
  await expect
    .poll(() => since().filter((parts) => /not announced until/.test(parts[1] ?? '')).length, SEEN)
    .toBe(1);
  await publisher(zookeeper).publish(keys({ greeting: 'good' }));
  await expect
    .poll(
      () =>
        since()
          .map((parts) => parts.length - 1)
          .sort(),
      SEEN,
    )
    .toEqual([1, 1, 2]);
  await expect.poll(announced, SEEN).toBe(3);
});
