import { afterEach, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import { configPublisher } from '../../../../src/zookeeper/configuration/index.js';
import { lock } from '../../../../src/zookeeper/recipes/lock.js';
import { sharedData } from '../../../../src/zookeeper/shared-data/shared-data.js';
import { EventClient } from '../../../support/network/event-client.js';
import { killAll, runCli } from '../../../support/processes.js';
import { restrict } from '../../zookeeper/discovery/discovery-support.js';
import { RecipeScene } from '../../zookeeper/recipes/recipe-scene.js';
import { newFolder, removeFolders } from './run-support.js';

const scene = new RecipeScene();

afterEach(async () => {
  await killAll();
  await scene.close();
  removeFolders();
});

const ROOT = '/monastery/root';

/** What the page has of the three, each in short; null: it cannot be read. */
function seenBy({ tree }: EventClient) {
  const { locks, data, configurations } = tree ?? {};
  return {
    locks:
      locks === null ? null : locks?.map(({ path, holders }) => [path, ...holders.map(({ data }) => data)]),
    data:
      data === null
        ? null
        : data?.map((root) =>
            root.data.map((each) => [each.name, ...each.entries.map(({ scalar }) => scalar?.value)]),
          ),
    configurations: configurations?.map(({ context, nodes }) => [
      context,
      ...nodes.map(({ nodeId, behind }) => [nodeId, ...behind]),
    ]),
  };
}

// In one, since each change takes a second or two to be seen.
it('the console learns of locks as they change hands, of shared data, and of the revision that each node runs, overrides too; and that locks and data cannot be read', async () => {
  const client = await scene.open();
  const connect = `${inject('zookeeper').connect}${scene.chroot}`;
  const shared = sharedData(client, { clock, random });
  const options = [
    '--store',
    `file:${newFolder()}`,
    '--zookeeper',
    connect,
    '--console-locks',
    '/locks',
    '--console-data',
    ROOT,
  ];
  const server = runCli(['console', '--http', '127.0.0.1:0', ...options]);
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
  const page = await EventClient.open(url);
  try {
    const sees = (expected: Partial<ReturnType<typeof seenBy>>) =>
      expect.poll(() => seenBy(page)).toMatchObject(expected);
    const publish = (nodes?: string) =>
      configPublisher(client, { app: 'shop', profile: 'prod', nodes, author: 'ada' }).publish([
        { key: 'a', new: `${nodes}` },
      ]);
    await sees({ locks: [], data: [[]], configurations: [] });

    const first = await lock(client, '/locks/report', { data: 'first' }).acquire();
    await (await shared.scalar<string>('limit')).set('x'.repeat(300));
    await publish();
    const watch = runCli([
      'config',
      'watch',
      '--app',
      'shop',
      '--profile',
      'prod',
      '--node',
      '1',
      '--zookeeper',
      connect,
    ]);
    await watch.waitForOutput(/watching/);
    for (const node of ['0', '2']) {
      await client.createWithParents(
        `/config/.nodelease/seen/shop,prod/${node}`,
        '{"revisions":{"shop,prod":1},"at":""}',
        'ephemeral',
      );
    }
    await sees({
      locks: [['/locks/report', 'first']],
      data: [[['limit', `${'x'.repeat(200)}…`]]],
      configurations: [['shop,prod', [0], [1], [2]]],
    });

    void lock(client, '/locks/report', { data: 'second' })
      .acquire()
      .catch(() => undefined);
    await first.release();
    await restrict(connect, `${ROOT}/data`, ['create']);
    await publish('1-2');
    await sees({
      locks: [['/locks/report', 'second']],
      data: null,
      configurations: [['shop,prod', [0], [1], [2, 'shop,prod@nodes=1-2']]],
    });

    await client.createWithParents('/locks/mine', '', 'persistent');
    await restrict(connect, '/locks/mine', ['create']);
    await sees({ locks: null });
    expect(page.tree?.exists).toBe(false);
  } finally {
    page.close();
    await shared.close();
  }
});

it('a fault of the console is in its log, as the answer to the request says', async () => {
  const fault = 'data:text/javascript,URLSearchParams.prototype.getAll=()=>{throw%20new%20Error(7)}';
  const options = ['--http', '127.0.0.1:0', '--store', `file:${newFolder()}`, '--log-format', 'json'];
  const server = runCli(['console', ...options], { env: { NODE_OPTIONS: `--import=${fault}` } });
  const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
  expect(await (await fetch(`${url}/api/leases?from=1`)).json()).toMatchObject({
    error: 'internal',
    message: expect.stringContaining('its log says more'),
  });
  await server.waitForOutput(/"level":50.*"msg":"GET \/api\/leases: 7"/);
});
