import { describe, expect, it } from 'vitest';
import { type Znode, ZooKeeperError } from '../client/zookeeper.js';
import type { Kind } from './data-report.js';
import { encodeRecord } from './entry.js';
import { HASHED_PATHS, sha256 } from './layout.js';
import { readSharedData, type SharedDataQuery } from './report.js';
import { encodePair, encodeScalar, toScalar } from './scalar-codec.js';

const ROOT = '/monastery/root';
const STAT = {
  version: 1,
  childrenVersion: 0,
  createdZxid: 7n,
  modifiedZxid: 7n,
  createdAt: 0,
  modifiedAt: 0,
  owner: undefined,
  childCount: 0,
};
const znode = (data: string, stat: Partial<Znode['stat']> = {}): Znode => ({
  data: Buffer.from(data),
  stat: { ...STAT, ...stat },
});
const record = (name: string, kind: Kind) =>
  encodeRecord({ address: { name, scope: '' }, kind, lifespan: 'persistent' });
const pathOf = (name: string) => `${ROOT}/data/${HASHED_PATHS.datum({ name, scope: '' }, 'map')}`;

/** What is read where these znodes are; undefined for one that may not be read. */
function reportOf(znodes: Record<string, Znode | undefined>, limits?: SharedDataQuery['limits']) {
  const zookeeper = {
    read: async (path: string) => {
      if (path in znodes && znodes[path] === undefined)
        throw new ZooKeeperError('no-auth', 'no-auth', 'not-applied');
      return znodes[path];
    },
    children: async (path: string) => {
      const below = Object.keys(znodes).filter((each) => each.startsWith(`${path}/`));
      return [...new Set(below.map((each) => each.slice(path.length + 1).split('/')[0] as string))];
    },
  };
  return readSharedData(zookeeper, { connect: 'zk', root: ROOT, limits });
}
const datumOf = async (path: string, found: Znode | undefined) => (await reportOf({ [path]: found })).data[0];
async function entryOf(kind: Kind, name: string, data: string) {
  const collection = znode(record('a', kind), { childCount: 1 });
  const { data: found } = await reportOf({
    [pathOf('a')]: collection,
    [`${pathOf('a')}/${name}`]: znode(data),
  });
  return found[0]?.entries[0];
}

describe('the report of shared data', () => {
  it('resolves a name from the address that the znode keeps, and says where that is not its hash', async () => {
    expect(await datumOf(pathOf('a'), znode(record('a', 'set')))).toMatchObject({
      path: pathOf('a'),
      name: 'a',
      scope: '',
      kind: 'set',
      lifespan: 'persistent',
      problem: null,
    });
    expect(await datumOf(`${ROOT}/data/elsewhere`, znode(record('a', 'set')))).toMatchObject({
      name: 'a',
      problem: 'its path is not the hash of its name and scope',
    });
  });

  it('shows what holds no shared data, an excerpt of it where it is long', async () => {
    const problemOf = async (data: Znode | undefined) => (await datumOf(`${ROOT}/data/x`, data))?.problem;
    expect(await problemOf(znode(''))).toBe('no shared data: no data');
    expect(await problemOf(znode('x'.repeat(100)))).toBe(`no shared data: ${'x'.repeat(40)}…`);
    expect(await problemOf(undefined)).toBe('may not be read: no-auth');
  });

  it('shows the place in a collision chain, and a name that is no hash of the element', async () => {
    const hash = sha256('3');
    expect(await entryOf('set', hash, encodeScalar(toScalar(3)))).toMatchObject({
      place: 0,
      problem: null,
      scalar: { type: 'Integer', value: '3' },
    });
    expect(await entryOf('set', `${hash}-12`, encodeScalar(toScalar('3')))).toMatchObject({
      place: 12,
      problem: 'its collision chain has a gap before it',
    });
    expect(await entryOf('set', `${hash}-0`, encodeScalar(toScalar('3')))).toMatchObject({
      place: null,
      problem: 'its name is no hash of it',
    });
    expect(await entryOf('list', '4', encodeScalar(toScalar('3')))).toMatchObject({
      place: null,
      key: { type: 'Integer', value: '4' },
      problem: null,
    });
  });

  it('shows unknown types, of keys too, texts that a type does not allow, and damage', async () => {
    expect((await entryOf('set', sha256('x'), '{"type":"Instant","value":"x"}'))?.problem).toBe(
      'unknown type Instant',
    );
    expect((await entryOf('set', sha256('x'), '{"type":"Integer","value":"x"}'))?.problem).toBe(
      'its text is no Integer',
    );
    const pair = encodePair({ type: 'Uuid', value: 'k' }, toScalar(1));
    expect(await entryOf('map', sha256('k'), pair)).toMatchObject({
      key: { type: 'Uuid', value: 'k' },
      problem: 'key: unknown type Uuid',
    });
    expect(await entryOf('map', sha256('k'), '{"key":1}')).toMatchObject({
      scalar: null,
      problem: 'no element of a map: {"key":1}',
    });
    expect((await entryOf('list', 'four', encodeScalar(toScalar(1))))?.problem).toContain(
      'no element of a list',
    );
  });

  it('finds gaps in chains and data in folders, and stops at its limits', async () => {
    const hash = sha256('3');
    const znodes: Record<string, Znode> = {
      [pathOf('a')]: znode(record('a', 'set'), { childCount: 3 }),
      [`${pathOf('a')}/${hash}`]: znode(encodeScalar(toScalar(3))),
      [`${pathOf('a')}/${hash}-2`]: znode(encodeScalar(toScalar('3'))),
      [`${pathOf('a')}/${sha256('long')}`]: znode(encodeScalar(toScalar('long'))),
      [`${ROOT}/data/map`]: znode('', { childCount: 1 }),
      [`${ROOT}/data/map/x`]: znode(record('b', 'map')),
    };
    const { data } = await reportOf(znodes);
    expect(data.map(({ name, size }) => [name, size])).toEqual([
      ['a', 3],
      ['b', 0],
    ]);
    expect(data[0]?.entries.map(({ scalar, problem }) => [scalar?.type, problem])).toEqual([
      ['Integer', null],
      ['String', 'its collision chain has a gap before it'],
      ['String', null],
    ]);
    const [short] = (await reportOf(znodes, { entries: 2, characters: 2 })).data;
    expect([short?.size, short?.entries.length]).toEqual([3, 2]);
    const beginning = { type: 'String', value: 'lo…', isShortened: true };
    expect(short?.entries.map(({ scalar }) => scalar)).toContainEqual(beginning);
  });
});
