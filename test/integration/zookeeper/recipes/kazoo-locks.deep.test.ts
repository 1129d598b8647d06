import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { PeerError, stopLinePeers } from '../../../support/peers/line-peer.js';
import { type RecipePeer, startKazooRecipes, startOurRecipes } from '../../../support/peers/recipe-peer.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { excludeEachOther, type Side, untilContenders } from './recipe-suite.js';

const { connect } = inject('zookeeper');

const kazoo: Side = { name: 'kazoo', start: startKazooRecipes, waitingZnodes: 1 };
const ours: Side = { name: 'nodelease', start: startOurRecipes, waitingZnodes: 2 };

// kazoo's classes under Curator's names, which takes two attributes of a subclass:
// test/interop/kazoo_peer.py.
const same = [
  ['lock', 'lock'],
  ['write', 'write'],
  ['write', 'read'],
  ['read', 'write'],
  ['semaphore', 'semaphore'],
] as const;

excludeEachOther({ first: kazoo, second: ours, kinds: same });
excludeEachOther({ first: ours, second: kazoo, kinds: same });

describe('kazoo’s own names', () => {
  let theirs: RecipePeer;
  let here: RecipePeer;
  let path: string;

  beforeEach(async () => {
    [theirs, here] = await Promise.all([startKazooRecipes({ connect }), startOurRecipes({ connect })]);
    path = `${uniqueChroot('recipes')}/it`;
  });
  afterEach(stopLinePeers);

  test('with extra_lock_patterns its lock waits for a holder here', async () => {
    await here.acquire({ id: 'a', kind: 'lock', path });
    expect(await theirs.acquire({ id: 'b', kind: 'lock-extra', path, timeoutMs: 400 })).toBeNull();
    const next = theirs.acquire({ id: 'c', kind: 'lock-extra', path });
    await untilContenders(path, 2);
    await here.release('a');
    expect(await next).not.toBeNull();
  });

  test('are an error here, not a second holder', async () => {
    await theirs.acquire({ id: 'a', kind: 'lock-extra', path });
    await expect(here.acquire({ id: 'b', kind: 'lock', path })).rejects.toThrow(
      new PeerError('foreign-znode'),
    );
    await untilContenders(path, 1);
  });
});
