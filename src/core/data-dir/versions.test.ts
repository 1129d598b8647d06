import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeVersion, newRoot, removeRoot } from '../../../test/support/data-dirs.js';
import { HeldTree } from './held-tree.js';
import { nodeIdsIn, obsoleteOf, sourceFor, versionsIn } from './versions.js';

let root: string;
beforeEach(() => {
  root = newRoot();
});
afterEach(() => removeRoot(root));

describe('the versions of a node id', () => {
  it('are listed newest first, each with its marker; other names are ignored', async () => {
    makeVersion(root, 3, 2, {});
    makeVersion(root, 3, 10, {}, null);
    makeVersion(root, 3, 4, {}, '');
    makeVersion(root, 3, 5, {}, '{"initializedAt":1,"version":9}');
    makeVersion(root, 3, 6, {}, 'oops');
    const nodeDir = join(root, 'node-3');
    for (const name of ['vx', 'v05', 'v-5', 'v', 'v2.removed', 'lost+found']) mkdirSync(join(nodeDir, name));
    writeFileSync(join(nodeDir, 'v7'), '');
    symlinkSync('v2', join(nodeDir, 'v8'));
    mkdirSync(join(nodeDir, 'v9', 'directory-initialized.json'), { recursive: true });
    const listed = (await versionsIn(new HeldTree(root), 'node-3')).map((each) => [
      each.version,
      each.state,
      'problem' in each ? each.problem : '',
    ]);
    expect(listed).toEqual([
      [10, 'unfinished', ''],
      [9, 'foreign', 'has a marker directory-initialized.json that is a directory'],
      [8, 'foreign', 'is a symbolic link and no directory'],
      [7, 'foreign', 'is a file and no directory'],
      [6, 'foreign', 'has a marker directory-initialized.json that is not JSON'],
      [5, 'foreign', 'has a marker directory-initialized.json that is of version 9'],
      [4, 'foreign', 'has a marker directory-initialized.json that is not JSON'],
      [2, 'valid', ''],
    ]);
    expect(await versionsIn(new HeldTree(root), 'node-4')).toEqual([]);
  });

  it('are looked at a few at a time: refused starts on a local disk leave one each, and files that are open are few', async () => {
    for (let version = 1; version <= 200; version += 1) makeVersion(root, 3, version, {}, null);
    let open = 0;
    let most = 0;
    class CountingTree extends HeldTree {
      override async within<T>(directory: string, work: (at: string) => Promise<T>): Promise<T> {
        most = Math.max(most, ++open);
        return super.within(directory, work).finally(() => open--);
      }
    }
    expect(await versionsIn(new CountingTree(root), 'node-3')).toHaveLength(200);
    expect(most).toBeLessThan(50);
  });

  it('are those of the node ids that have directories', async () => {
    for (const name of ['node-10', 'node-2', 'node-x', 'node-02', 'other']) mkdirSync(join(root, name));
    writeFileSync(join(root, 'node-7'), '');
    expect(await nodeIdsIn(root)).toEqual([2, 10]);
  });
});

describe('the choice among them', () => {
  /** `5` is valid, `5?` unfinished, `5!` foreign. */
  async function given(...names: string[]) {
    for (const name of names) {
      const version = Number.parseInt(name, 10);
      if (name.endsWith('?')) makeVersion(root, 0, version, {}, null);
      else if (name.endsWith('!')) makeVersion(root, 0, version, {}, 'oops');
      else makeVersion(root, 0, version, {});
    }
    return versionsIn(new HeldTree(root), 'node-0');
  }

  it.each([
    [5, ['1', '3', '4?'], 3],
    [5, ['1', '9'], 1],
    [5, ['5', '9', '4!'], undefined],
    [1, [], undefined],
  ])('version %i is made from the newest valid one below it: of %j from %s', async (version, names, from) => {
    expect(sourceFor(version, await given(...names))?.version).toBe(from);
  });

  it.each([
    // As measured of Camunda: v3 and v5 are left.
    [2, ['1', '2', '3', '5'], [2, 1]],
    [1, ['1', '2', '3', '5'], [3, 2, 1]],
    [9, ['1', '2'], []],
    // Unlike Camunda: the maker of one above the newest valid version may be at work.
    [2, ['1', '2?', '3', '4?', '5?'], [2]],
    [1, ['1?', '2?'], []],
    [1, ['1', '2!', '3', '4!'], [1]],
  ])('with a retention of %i, %j loses %j', async (retention, names, gone) => {
    expect(obsoleteOf(await given(...names), retention).map(({ version }) => version)).toEqual(gone);
  });
});
