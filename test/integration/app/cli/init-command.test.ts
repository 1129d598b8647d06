import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import { type FleetStore, newStore, removeStores, startTask } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli } from '../../../support/processes.js';
import { S3StandIn, type StandInFaults } from '../../../support/s3-stand-in.js';

afterEach(async () => {
  vi.unstubAllEnvs();
  await killAll();
  await removeStores();
});

const init = (store: FleetStore, ...args: string[]) =>
  runInProcess(['init', ...store.options, ...args], { env: store.env });

describe('nodelease init on S3', () => {
  it('creates everything that tasks then use, with nothing left over', async () => {
    const store = await newStore('s3');
    const command = runCli(['init', ...store.options, '--nodes', '20', '--duration', '20s'], {
      env: store.env,
    });
    expect({ ...(await command.exit), complaints: command.stderr() }).toEqual({
      code: 0,
      signal: null,
      complaints: '',
    });
    expect(command.stdout()).toMatch(
      /^created a cluster of 20 node ids at .* \(duration 20s, grace 1s\)\n20 lease objects written\n$/,
    );
    const ids = Array.from({ length: 20 }, (_, id) => `${id}.json`);
    expect(await store.keys()).toEqual([...ids, 'cluster.json'].sort());
    expect((await init(store)).answer).toMatch(/nothing to do\n$/);
    const task = startTask(store, [], 'true');
    expect(await task.started()).toEqual({ id: 0, version: 1 });
    await task.exit;
  });

  it('names a lease object that is not JSON, and restores it only when it is given a version, and no task writes it', async () => {
    const store = await newStore('s3');
    await init(store, '--nodes', '2', '--duration', '1s', '--grace', '500ms');
    await store.spoil('1.json', 'no lease');
    const damaged = await init(store);
    expect(damaged.code).toBe(69);
    expect(damaged.complaints).toMatch(
      /^nodelease: node id 1: lease object is not JSON.*\nnodelease: 1 of 2 node ids .*init --repair.*\n$/,
    );
    expect((await init(store, '--repair')).complaints).toMatch(
      /not restored, nothing is known of its versions/,
    );
    expect(await store.read('1.json')).toBe('no lease');
    const repaired = await init(store, '--repair', '--above-version', '7');
    expect(repaired).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/^node id 1: .*: restored at version 8\n$/),
    });
    expect(repaired.complaints).toMatch(
      /^(nodelease: watching damaged lease objects for .*s: somebody may hold them\n)?$/,
    );
    expect((await init(store)).code).toBe(0);
  });
});

describe('nodelease on a folder that contains something else in place of leases', () => {
  it('names them, uses the other ids, does not hang, and restores them above their versions', async () => {
    const store = await newStore('file');
    const folder = store.options[1]?.replace('file:', '') ?? '';
    await init(store, '--nodes', '5', '--duration', '3s');
    const leases = [];
    for (const id of [0, 1, 2, 3]) {
      const lease = await acquire({ store: `file:${folder}`, taskId: `task-${id}`, onLost: 'signal' });
      expect(lease).toMatchObject({ id, version: 1 });
      leases.push(lease);
    }
    await Promise.all(leases.map((lease) => lease.release()));
    for (const id of [0, 1, 2]) await rm(join(folder, `${id}.json`));
    await mkdir(join(folder, '0.json'));
    execFileSync('mkfifo', [join(folder, '1.json')]);
    await symlink('/dev/zero', join(folder, '2.json'));
    await rm(join(folder, '.cas/3.json/0'), { recursive: true });
    execFileSync('mkfifo', [join(folder, '.cas/3.json/0')]);

    const status = await runInProcess(['status', '--json', ...store.options]);
    const states = JSON.parse(status.answer).nodes.map(
      ({ state, problem }: Record<string, unknown>) => `${state} ${problem ?? ''}`,
    );
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
      complaints: expect.stringMatching(
        /^nodelease: watching damaged lease objects for [34](\.\d)?s: somebody may hold them\n$/,
      ),
    });
    expect((await init(store)).code).toBe(0);
  });
});

describe('nodelease init --restored', () => {
  it('has neither node ids nor locks given out for a while, and says so', async () => {
    const store = await newStore('file');
    // Longer than everything here takes on a loaded machine.
    const duration = ['--duration', '10m'];
    await init(store, '--nodes', '2', ...duration);
    const lock = (name: string) =>
      runCli(['lock', name, '--try', ...duration, ...store.options, '--', 'true'], { env: store.env });
    expect((await lock('report').exit).code).toBe(0);
    const noted = await init(store, '--restored', '--json');
    expect(JSON.parse(noted.answer)).toMatchObject({ cluster: true, locks: 1 });
    // One that the store does not have may be lost.
    for (const refused of [lock('report'), lock('other')]) {
      expect((await refused.exit).code).toBe(75);
      expect(refused.stderr()).toContain('the store was restarted, restored or replaced');
    }
    const { answer } = await runInProcess(['status', ...store.options]);
    expect(answer).toContain('nothing is given out for a duration and a grace');
    const { cluster } = JSON.parse((await runInProcess(['status', '--json', ...store.options])).answer);
    expect(cluster.settling).toBe(true);
    const doctor = await runInProcess(['doctor', ...store.options]);
    expect(doctor.answer).toMatch(/warn {3}epoch: the store was restarted.*\n(.*\n)*No faults, 1 warning/);
  });

  it('is noted for locks where the copy has none yet', async () => {
    const store = await newStore('file');
    const [, url = ''] = store.options;
    expect(await runInProcess(['init', '--store', `${url}/locks`, '--nodes', '1'])).toMatchObject({
      code: 0,
    });
    expect(await init(store, '--restored')).toMatchObject({
      code: 0,
      answer: expect.stringContaining('0 locks noted: the store was restarted, restored or replaced'),
    });
  });

  it('is refused without a cluster, and together with --repair', async () => {
    const store = await newStore('file');
    expect(await init(store, '--restored')).toMatchObject({
      code: 69,
      complaints: expect.stringContaining('There is no cluster at'),
    });
    expect((await init(store, '--restored', '--repair')).code).toBe(64);
  });
});

describe('nodelease init on an S3 server', () => {
  const initThere = async (store: string, faults: Partial<StandInFaults> = {}) => {
    const server = await S3StandIn.start();
    Object.assign(server.faults, faults);
    const env = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'us-east-1' };
    try {
      return {
        ...(await runInProcess(['init', '--endpoint', server.endpoint, '--store', store], { env })),
        keys: server.keys,
      };
    } finally {
      await server.stop();
    }
  };

  it('that ignores If-None-Match or If-Match is refused with 69, in one line that says so, and keeps nothing but that', async () => {
    const faulty: [string, Partial<StandInFaults>][] = [
      ['If-None-Match', { ignoreIfNoneMatch: true }],
      ['If-Match', { ignoreIfMatch: true }],
    ];
    const refused = await Promise.all(faulty.map(([, faults]) => initThere('s3://bucket/fleet', faults)));
    expect(refused).toEqual(
      faulty.map(([header]) => ({
        ...{ code: 69, answer: '', keys: ['fleet/cluster.json'] },
        complaints: expect.stringMatching(
          new RegExp(`^nodelease: .*cannot be trusted with leases: .*ignores ${header}.*\n$`),
        ),
      })),
    );
  });

  it('whose bucket does not exist is refused with 69, in one line', async () => {
    const { code, complaints } = await initThere('s3://no-such-bucket/fleet');
    expect(code).toBe(69);
    expect(complaints).toMatch(/^nodelease: .*no-such-bucket.*bucket does not exist.*\n$/);
  });
});
