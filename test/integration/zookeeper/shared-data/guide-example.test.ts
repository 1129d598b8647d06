import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import {
  openZooKeeper,
  type ZooKeeperClient,
  type ZooKeeperOptions,
} from '../../../../src/zookeeper/client/zookeeper-client.js';
import { type SharedData, sharedData } from '../../../../src/zookeeper/shared-data/index.js';
import { packageRoot } from '../../../support/package-root.js';
import { uniqueChroot } from '../../../support/zookeeper.js';

type Example = (
  ...given: unknown[]
) => Promise<{ readonly zookeeper: ZooKeeperClient; readonly data: SharedData }>;

/** The first example of the guide as a function: it gets what it imports, and a console. */
function firstExample(): Example {
  const guide = readFileSync(join(packageRoot, 'docs/zookeeper/shared-data.md'), 'utf8');
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? [];
  const plain = code
    .replace(/^import .*$/gm, '')
    .replaceAll('<string, number>', '')
    // A value on a line of its own is what a reader looks at.
    .replace(/^(\w+\.get\(.*?\));/gm, 'console.log($1);');
  return new Function(
    ...['systemClock', 'systemRandom', 'sharedData', 'openZooKeeper', 'console'],
    `return (async () => { ${plain}; return { zookeeper, data }; })();`,
  ) as Example;
}

it('the first example of the guide shows what it has written', async () => {
  const connect = `${inject('zookeeper').connect}${uniqueChroot('guide')}`;
  const shown: unknown[][] = [];
  const open = (options: ZooKeeperOptions) => openZooKeeper({ ...options, connect });
  const log = (...said: unknown[]) => void shown.push(said);
  const { zookeeper, data } = await firstExample()(systemClock, systemRandom, sharedData, open, { log });
  await expect.poll(() => shown).toEqual([['added', 'Virginia', 10]]);
  await data.close();
  await zookeeper.close();
});
