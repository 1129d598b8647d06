import { expect } from 'vitest';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import type { RecipePeer } from '../../../support/peers/recipe-peer.js';

/** A znode of a recipe's tree: its path below the recipe's, its kind and its data in hex. */
export type TreeNode = readonly [path: string, mode: 'ephemeral' | 'persistent', data: string];

/** A recipe's trees at moments of its use. */
export type Moments = Readonly<Record<string, readonly TreeNode[]>>;

/** What is played with one peer, and looked at in between. */
export interface Scene {
  /** `look` waits until there are so many znodes, the recipe's own included. */
  play(
    peer: RecipePeer,
    path: string,
    look: (moment: string, znodes: number) => Promise<void>,
  ): Promise<void>;
}

/**
 * The tree at a path and below, in the order of its names with what differs between runs taken out: `<uuid>`
 * stands for a UUID, `<n>` for the servers' number. A persistent znode and a container look the same to
 * clients.
 */
export async function treeAt(zookeeper: ZooKeeperClient, path: string, below = ''): Promise<TreeNode[]> {
  const znode = await zookeeper.read(path);
  if (znode === undefined) return [];
  const names = [...((await zookeeper.children(path)) ?? [])].sort((a, b) =>
    numberOf(a) < numberOf(b) ? -1 : 1,
  );
  const deeper: TreeNode[] = [];
  for (const name of names)
    deeper.push(...(await treeAt(zookeeper, `${path}/${name}`, `${below}/${general(name)}`)));
  return [
    [below || '/', znode.stat.owner === undefined ? 'persistent' : 'ephemeral', znode.data.toString('hex')],
    ...deeper,
  ];
}

/** What orders the children: the servers' number where there is one. */
const numberOf = (name: string) => /\d{10}$/.exec(name)?.[0] ?? name;

const general = (name: string) =>
  name.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, '<uuid>').replace(/\d{10}$/, '<n>');

/** Plays a scene; {@link treeAt} at each of its moments. */
export async function record(
  scene: Scene,
  peer: RecipePeer,
  zookeeper: ZooKeeperClient,
  path: string,
): Promise<Moments> {
  const moments: Record<string, TreeNode[]> = {};
  await scene.play(peer, path, async (moment, znodes) => {
    let tree: TreeNode[] = [];
    const look = async () => {
      tree = await treeAt(zookeeper, path);
      return tree.length;
    };
    await expect.poll(look).toBe(znodes);
    moments[moment] = tree;
  });
  return moments;
}

/** What Curator writes where a recipe has no use for the data, and into the parents that it makes. */
const FREE = [Buffer.from('127.0.0.1').toString('hex'), ''];

/** The trees without the data that is never read, which is free: the data that is so in the golden ones. */
export function withoutFreeData(moments: Moments, golden: Moments): Moments {
  const compared = Object.entries(moments).map(([moment, znodes]) => {
    const reported = znodes.map(
      ([path, mode, data], index): TreeNode => [
        path,
        mode,
        FREE.includes(golden[moment]?.[index]?.[2] ?? '') ? '' : data,
      ],
    );
    return [moment, reported] as const;
  });
  return Object.fromEntries(compared);
}

/** By the names of their files. */
export const SCENES: Readonly<Record<string, Scene>> = {
  lock: {
    async play(peer, path, look) {
      await peer.acquire({ id: 'a', kind: 'lock', path });
      await look('held', 2);
      const waiting = peer.acquire({ id: 'b', kind: 'lock', path });
      await look('held, and waited for', 3);
      await peer.release('a');
      await waiting;
      await look('held by the next one', 2);
      await peer.release('b');
      await look('released', 1);
    },
  },
  'read-write-lock': {
    async play(peer, path, look) {
      await peer.acquire({ id: 'w', kind: 'write', path });
      await look('written', 2);
      const reading = peer.acquire({ id: 'r', kind: 'read', path });
      await look('written, and a reader waits', 3);
      const writing = peer.acquire({ id: 'w2', kind: 'write', path });
      await look('written, and a reader and a writer wait', 4);
      await peer.release('w');
      await reading;
      await look('read, and a writer waits', 3);
      await peer.release('r');
      await writing;
      await peer.downgrade('w2');
      await look('read after a downgrade', 2);
      await peer.release('w2');
      await look('released', 1);
    },
  },
  semaphore: {
    async play(peer, path, look) {
      const semaphore = { kind: 'semaphore', path, count: 2 } as const;
      await peer.acquire({ id: 'a', ...semaphore });
      await look('one lease of two', 4);
      await peer.acquire({ id: 'b', ...semaphore });
      await look('two leases', 5);
      const waiting = peer.acquire({ id: 'c', ...semaphore });
      await look('two leases, and a third waits', 7);
      await peer.release('a');
      await waiting;
      await look('the third has it', 5);
      await peer.release('b');
      await peer.release('c');
      await look('returned', 3);
    },
  },
  'leader-latch': {
    async play(peer, path, look) {
      await peer.acquire({ id: 'a', kind: 'latch', path });
      await look('led', 2);
      const waiting = peer.acquire({ id: 'b', kind: 'latch', path });
      await look('led, and another takes part', 3);
      await peer.release('a');
      await waiting;
      await look('led by the next one', 2);
      await peer.release('b');
      await look('over', 1);
    },
  },
  barrier: {
    async play(peer, path, look) {
      await peer.barrier('set', path);
      await look('set', 1);
      await peer.barrier('remove', path);
      await look('removed', 0);
    },
  },
  'double-barrier': {
    async play(peer, path, look) {
      const barrier = { kind: 'double-barrier', path, count: 2 } as const;
      const first = peer.acquire({ id: 'a', ...barrier });
      await look('one of two waits', 2);
      await peer.acquire({ id: 'b', ...barrier });
      await first;
      await look('both are in', 4);
      await Promise.all([peer.release('a'), peer.release('b')]);
      await look('both have left', 1);
    },
  },
  counter: {
    async play(peer, path, look) {
      await peer.count(path, 'add', 5);
      await look('5', 1);
      await peer.count(path, 'add', -10);
      await look('-5', 1);
    },
  },
  'simple-queue': {
    async play(peer, path, look) {
      await peer.offer(path, '00ff');
      await peer.offer(path, '6f6e65');
      await look('two items', 3);
      await peer.poll(path, 10_000);
      await look('one taken', 2);
    },
  },
  'distributed-queue': {
    async play(peer, path, look) {
      await peer.put(`${path}/items`, 'one');
      await look('an item', 3);
      await peer.consume({ id: 'c', path: `${path}/items`, lockPath: `${path}/locks`, holdMs: 60_000 });
      await look('being taken', 5);
      await peer.endHold('c');
      await look('taken', 3);
      await peer.stopConsuming('c');
    },
  },
};
