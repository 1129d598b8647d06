import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { packageRoot } from '../../../support/package-root.js';
import { stopLinePeers } from '../../../support/peers/line-peer.js';
import { startCuratorRecipes, startOurRecipes } from '../../../support/peers/recipe-peer.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { type Moments, record, SCENES, withoutFreeData } from './recipe-scenes.js';

const { connect } = inject('zookeeper');
const FIXTURES = join(packageRoot, 'test/fixtures/recipes');
/**
 * Set to write them, for a new recipe or another version of Curator; `npm run format` then puts them into
 * shape.
 */
const RECORDS = process.env.NODELEASE_TEST_RECORD === 'recipes';

afterEach(async () => {
  await Promise.all([closeClients(), stopLinePeers()]);
});

const golden = async (name: string) =>
  JSON.parse(await readFile(join(FIXTURES, `${name}.json`), 'utf8')) as Moments;

test('there is a golden tree of every recipe, and no other', async () => {
  expect((await readdir(FIXTURES)).sort()).toEqual(
    Object.keys(SCENES)
      .map((name) => `${name}.json`)
      .sort(),
  );
});

describe.each(Object.entries(SCENES))('%s', (name, scene) => {
  test('the golden tree is what Curator makes', async () => {
    const moments = await record(
      scene,
      await startCuratorRecipes({ connect }),
      client(connect),
      `${uniqueChroot('trees')}/${name}`,
    );
    if (RECORDS) await writeFile(join(FIXTURES, `${name}.json`), `${JSON.stringify(moments, null, 2)}\n`);
    expect(moments).toEqual(await golden(name));
  });

  test('nodelease makes the same tree', async () => {
    const moments = await record(
      scene,
      await startOurRecipes({ connect }),
      client(connect),
      `${uniqueChroot('trees')}/${name}`,
    );
    const expected = await golden(name);
    expect(withoutFreeData(moments, expected)).toEqual(withoutFreeData(expected, expected));
  });
});
