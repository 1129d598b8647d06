import { expect, it } from 'vitest';
import { LaggingServer } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { CallOptions } from '../client/zookeeper.js';
import { presentDatum, removeEntry } from './edit.js';
import { dataFolder, HASHED_PATHS, sha256 } from './layout.js';
import { sharedData } from './shared-data.js';

const ROOT = '/monastery/root';
const ADDRESS = { name: 'present', scope: '' };
const PATH = `${dataFolder(ROOT)}/${HASHED_PATHS.datum(ADDRESS, 'set')}`;

class Tree extends LaggingServer {
  override async read(path: string, call: CallOptions = {}) {
    const znode = await super.read(path, call);
    const childCount = (await this.children(path))?.length ?? 0;
    return znode && { ...znode, stat: { ...znode.stat, childCount } };
  }
}

/** Another client has written a set with one element, at a server that is ahead. */
function behind(lifespan: 'persistent' | 'ephemeral') {
  const clock = new VirtualClock();
  const tree = new Tree(clock);
  for (const path of [ROOT, dataFolder(ROOT)]) tree.put(path, '', undefined);
  tree.put(PATH, JSON.stringify({ address: ADDRESS, kind: 'set', lifespan }), undefined);
  tree.put(`${PATH}/${sha256('a')}`, '{"type":"String","value":"a"}', undefined);
  const data = sharedData(tree, { clock, random: seededRandom(1) });
  const done = <T>(work: Promise<T>) => inVirtualTime(clock, work);
  return { tree, data, done };
}

it('data that a server does not show yet is opened as what it is', async () => {
  const { data, done } = behind('ephemeral');
  expect((await done(data.set('present'))).lifespan).toBe('ephemeral');
});

it('data that a server does not show yet is added to as what it is', async () => {
  const { data, done } = behind('persistent');
  expect(await done(presentDatum(data, ADDRESS, '', {}))).toMatchObject({ kind: 'set' });
});

it('data, and an entry of it, that a server does not show yet are removed all the same', async () => {
  const one = behind('persistent');
  expect(await one.done(removeEntry(one.data, { ...ADDRESS, entry: { value: 'a' } }, {}))).toBe(true);
  expect([...one.tree.znodes.keys()].at(-1)).toBe(PATH);
  const all = behind('persistent');
  expect(await all.done(all.data.remove('present'))).toBe(true);
  expect([...all.tree.znodes.keys()]).toEqual([ROOT, dataFolder(ROOT)]);
  expect(await all.done(all.data.remove('present'))).toBe(false);
});

it('a list says that it may have been changed where the reply does not come in time', async () => {
  const { tree, data, done } = behind('persistent');
  tree.put(PATH, JSON.stringify({ address: ADDRESS, kind: 'list', lifespan: 'persistent' }), undefined);
  tree.znodes.delete(`${PATH}/${sha256('a')}`);
  const list = await done(data.list('present'));
  tree.fault = async (operation, path, apply) => {
    if (operation !== 'multi' || path !== PATH) return;
    apply();
    await new Promise(() => undefined);
  };
  await expect(done(list.append('a'))).rejects.toMatchObject({ fault: 'outcome-unknown' });
  tree.fault = async () => new Promise(() => undefined);
  await expect(done(list.append('b'))).rejects.toMatchObject({ fault: 'timeout' });
});
