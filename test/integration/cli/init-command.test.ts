import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { type FleetStore, fleetStore, startTask } from '../../support/fleet.js';
import { killAll, runCli } from '../../support/processes.js';
import { S3StandIn } from '../../support/s3-stand-in.js';

afterEach(killAll);

async function init(store: FleetStore, ...args: string[]) {
  const command = runCli(['init', ...store.options, ...args], { env: store.env });
  const { code } = await command.exit;
  return { code, answer: command.stdout(), complaints: command.stderr() };
}

describe.each(['file', 's3'] as const)('nodelease init on %s', (kind) => {
  let store: FleetStore;
  beforeEach(async () => {
    store = await fleetStore(kind, inject('s3'));
  });
  afterEach(() => store.remove());

  it('creates everything that tasks then use, with nothing left over', async () => {
    const { code, answer, complaints } = await init(store, '--nodes', '20', '--duration', '20s');
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    expect(answer).toMatch(/^created a cluster of 20 node ids at .* \(duration 20s, grace 1s\)\n20 lease objects written\n$/);
    const ids = Array.from({ length: 20 }, (_, id) => `${id}.json`);
    expect(await store.keys()).toEqual([...ids, 'cluster.json'].sort());
    expect((await init(store)).answer).toMatch(/nothing to do\n$/);
    const task = startTask(store, [], 'true');
    expect(await task.started()).toEqual({ id: 0, version: 1 });
    await task.exit;
  });

  it('names a lease object that is not JSON, and restores it only when it is told a version, and no task writes it', async () => {
    await init(store, '--nodes', '2', '--duration', '1s', '--grace', '500ms');
    await store.spoil('1.json', 'no lease');
    const damaged = await init(store);
    expect(damaged.code).toBe(69);
    expect(damaged.complaints).toMatch(
      /^nodelease: node id 1: lease object is not JSON.*\nnodelease: 1 of 2 node ids .*init --repair.*\n$/,
    );
    expect((await init(store, '--repair')).complaints).toMatch(/not restored, nothing is known of its versions/);
    expect(await store.read('1.json')).toBe('no lease');
    const repaired = await init(store, '--repair', '--above-version', '7');
    expect(repaired).toMatchObject({ code: 0, answer: expect.stringMatching(/^node id 1: .*: restored at version 8\n$/) });
    expect(repaired.complaints).toMatch(/^(nodelease: watching damaged lease objects for .*s: somebody may hold them\n)?$/);
    expect((await init(store)).code).toBe(0);
  });
});

describe('nodelease on a folder in which something else stands in place of leases', () => {
  let store: FleetStore;
  beforeEach(async () => {
    store = await fleetStore('file', inject('s3'));
  });
  afterEach(() => store.remove());

  it('names them, uses the other ids, does not hang, and restores them above their versions', async () => {
    const folder = store.options[1]?.replace('file:', '') ?? '';
    await init(store, '--nodes', '5', '--duration', '3s');
    const tasks = [];
    for (const id of [0, 1, 2, 3]) {
      const task = startTask(store, []);
      expect(await task.started()).toEqual({ id, version: 1 });
      tasks.push(task);
    }
    // A write that is cut off in its middle would be finished by the next writer.
    for (const task of tasks) task.kill('SIGTERM');
    await Promise.all(tasks.map((task) => task.exit));
    for (const id of [0, 1, 2]) await rm(join(folder, `${id}.json`));
    await mkdir(join(folder, '0.json'));
    execFileSync('mkfifo', [join(folder, '1.json')]);
    await symlink('/dev/zero', join(folder, '2.json'));
    await rm(join(folder, '.cas/3.json/0'), { recursive: true });
    execFileSync('mkfifo', [join(folder, '.cas/3.json/0')]);

    const status = runCli(['status', '--json', ...store.options], { env: store.env });
    await status.exit;
    const states = JSON.parse(status.stdout()).nodes.map(({ state, problem }: Record<string, unknown>) => `${state} ${problem ?? ''}`);
    const task = startTask(store, [], 'true');
    expect(await task.started()).toEqual({ id: 4, version: 1 });
    expect((await task.exit).code).toBe(0);
    const repaired = await init(store, '--repair');
    expect({ states, ...repaired }).toEqual({
      states: [
        'unreadable lease object is not JSON: "<0.json: directory>"',
        'unreadable lease object is not JSON: "<1.json: FIFO>"',
        'unreadable lease object is not JSON: "<2.json: symbolic link>"',
        'unreadable lease object is not JSON: "<.cas/3.json/0: FIFO>"',
        'vacant ',
      ],
      code: 0,
      answer: expect.stringMatching(/^(node id [0-3]: .*: restored at version 2\n){4}$/),
      complaints: expect.stringMatching(/^nodelease: watching damaged lease objects for [34](\.\d)?s: somebody may hold them\n$/),
    });
    expect((await init(store)).code).toBe(0);
  });
});

describe('nodelease init on an S3 server', () => {
  let server: S3StandIn;
  beforeEach(async () => {
    server = await S3StandIn.start();
  });
  afterEach(() => server.stop());

  const initThere = async (...args: string[]) => {
    const env = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' };
    const command = runCli(['init', '--endpoint', server.endpoint, ...args], { env });
    const { code } = await command.exit;
    return { code, answer: command.stdout(), complaints: command.stderr() };
  };

  it.each([
    ['If-None-Match', { ignoreIfNoneMatch: true }],
    ['If-Match', { ignoreIfMatch: true }],
  ])('that ignores %s is refused with 69, in one line that says so, and keeps nothing but that', async (header, faults) => {
    Object.assign(server.faults, faults);
    const { code, answer, complaints } = await initThere('--store', 's3://bucket/fleet');
    expect({ code, answer }).toEqual({ code: 69, answer: '' });
    expect(complaints).toMatch(new RegExp(`^nodelease: .*cannot be trusted with leases: .*ignores ${header}.*\n$`));
    expect(server.keys).toEqual(['fleet/cluster.json']);
  });

  it('whose bucket does not exist is refused with 69, in one line', async () => {
    const { code, complaints } = await initThere('--store', 's3://no-such-bucket/fleet');
    expect(code).toBe(69);
    expect(complaints).toMatch(/^nodelease: .*no-such-bucket.*bucket does not exist.*\n$/);
  });
});
