import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { type ClusterConfig, encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { plan } from './plan.js';
import { decodeMap, encodeMap, ensureMap, type MapMember, SHARDS_KEY, type ShardMap } from './shard-map.js';

const BODY =
  '{"epoch":41,"count":4,"members":[[3,17,"10.0.0.7:8080"],[5,2]],"owner":[0,0,1,-1],"token":[12,12,41,0],"next":{"1":1}}';

const empty = (count: number) =>
  Array.from({ length: count }, () => ({ owner: undefined, token: 0, next: undefined }));

describe('the map of shards', () => {
  it('is read as it is written', () => {
    const map = decodeMap(BODY);
    const [a, b] = map.members as [MapMember, MapMember];
    expect([a, b]).toEqual([
      { id: 3, version: 17, address: '10.0.0.7:8080' },
      { id: 5, version: 2 },
    ]);
    expect(map.shards).toEqual([
      { owner: a, token: 12 },
      { owner: a, token: 12, next: b },
      { owner: b, token: 41 },
      { owner: undefined, token: 0 },
    ]);
    expect(encodeMap(map)).toBe(BODY);
  });

  it('has the failed starts of shards, and the limits of members, where there are some', () => {
    const failing = BODY.replace(/}$/, ',"failed":{"2":9},"limit":{"1":0}}');
    const map = decodeMap(failing);
    expect(map.shards.map(({ failed }) => failed)).toEqual([undefined, undefined, 9, undefined]);
    expect([...(map.limits ?? [])]).toEqual([[map.members[1], 0]]);
    expect(encodeMap(map)).toBe(failing);
    const many = failing.replace('{"2":9}', '[1,2,9,0]');
    expect(encodeMap(decodeMap(many))).toBe(many);
  });

  it('has a list of what is to move if that is more than a third of the shards', () => {
    const many = BODY.replace('{"1":1}', '[-1,1,0,-1]');
    const map = decodeMap(many);
    const [a, b] = map.members;
    expect(map.shards.map(({ next }) => next)).toEqual([undefined, b, a, undefined]);
    expect(encodeMap(map)).toBe(many);
  });

  it('takes a move to the owner for none', () => {
    const map = decodeMap(BODY.replace('{"1":1}', '{"1":0}'));
    expect(map.shards[1]).toEqual({ owner: map.members[0], token: 12 });
  });

  it.each([
    ['no JSON', '{'],
    ['a list', '[]'],
    ['an empty body', ''],
    ['no epoch', BODY.replace('"epoch":41', '"epoch":0')],
    ['an epoch that is no number', BODY.replace('41,"count"', '"41","count"')],
    ['no members', BODY.replace('"members"', '"x"')],
    ['a member without a version', BODY.replace('[5,2]', '[5]')],
    ['a member that is no list', BODY.replace('[5,2]', '5')],
    ['a node id out of range', BODY.replace('[5,2]', '[65528,2]')],
    ['an owner that is no member', BODY.replace('[0,0,1,-1]', '[0,0,2,-1]')],
    ['fewer owners than shards', BODY.replace('[0,0,1,-1]', '[0,0,1]')],
    ['more shards than its count', BODY.replace('"count":4', '"count":3')],
    ['a token above the epoch', BODY.replace('[12,12,41,0]', '[12,12,42,0]')],
    ['a token that is no number', BODY.replace('[12,12,41,0]', '[12,12,null,0]')],
    ['a next that is no member', BODY.replace('{"1":1}', '{"1":2}')],
    ['a next of a shard that does not exist', BODY.replace('{"1":1}', '{"4":1}')],
    ['a next of what is no shard', BODY.replace('{"1":1}', '{"x":1}')],
    ['more failed starts than are counted', BODY.replace(/}$/, ',"failed":{"1":10}}')],
    ['failed starts of a shard that does not exist', BODY.replace(/}$/, ',"failed":{"4":1}}')],
    ['a limit of what is no member', BODY.replace(/}$/, ',"limit":{"2":1}}')],
    ['a limit above its count', BODY.replace(/}$/, ',"limit":{"1":5}}')],
  ])('is unreadable with %s', (_, body) => {
    expect(() => decodeMap(body)).toThrow(expect.objectContaining({ code: 'LEASE_UNREADABLE' }));
  });

  it('has short tokens in a later series, too', () => {
    const map = decodeMap(BODY);
    const [epoch, shards] = [
      2 ** 33 + map.epoch,
      map.shards.map((each) => ({ ...each, token: each.token && 2 ** 33 + each.token })),
    ];
    const body = encodeMap({ ...map, epoch, shards });
    expect(body.length - BODY.length).toBeLessThan(40);
    expect(decodeMap(body)).toEqual({ ...map, epoch, shards });
  });

  it.each([
    ['', 0],
    [', after a repair as well', 2 ** 32],
  ])(
    'stays below 64 KB with 4,096 shards on 100 members, also while nearly all move or fail%s',
    (_, series) => {
      const shards = Array.from({ length: 4_096 }, () => ({ owner: undefined, token: 0, next: undefined }));
      const members = Array.from({ length: 100 }, (_, id) => ({
        id: 65_000 + id,
        version: 1_234,
        address: '10.200.100.100:8080',
      }));
      const map = plan({ epoch: series + 1_000_000, members: [], shards }, { members }) as ShardMap;
      expect(encodeMap(map).length).toBeLessThan(64_000);
      const alone = plan({ ...map, members: [] }, { members: members.slice(0, 1) }) as ShardMap;
      const moving = plan(alone, { members, settled: true }) as ShardMap;
      expect(moving.shards.filter(({ next }) => next)).toHaveLength(4_055);
      expect(encodeMap(moving).length).toBeLessThan(64_000);
      const failed = { shards: map.shards.map((shard) => ({ ...shard, failed: 9 })) };
      const limits = new Map(map.members.map((member) => [member, 4_096]));
      expect(encodeMap({ ...map, ...failed, limits }).length).toBeLessThan(64_000);
    },
  );
});

describe('a map', () => {
  const members = [{ id: 1, version: 2, address: undefined }];
  const [owner] = members;
  const mapOf = (tokens: readonly number[], moving = 0): ShardMap => ({
    ...{ epoch: 2 ** 22, members },
    shards: tokens.map((token, at) => ({
      ...(at < moving ? { owner: undefined, next: owner } : { owner, next: undefined }),
      token,
    })),
  });

  it('has long tokens in short, also where a shard has none', () => {
    const map = mapOf([0, 2 ** 20 + 1, 2 ** 21]);
    expect(JSON.parse(encodeMap(map))).toMatchObject({ before: 2 ** 20, token: [0, 1, 2 ** 20] });
    expect(decodeMap(encodeMap(map)).shards).toEqual(map.shards);
    expect(JSON.parse(encodeMap(mapOf([2 ** 20]))).token).toEqual([2 ** 20]);
  });

  it('has by number what is to move if that is a third of the shards', () => {
    expect(JSON.parse(encodeMap(mapOf([1, 1, 1], 1))).next).toEqual({ 0: 0 });
    expect(JSON.parse(encodeMap(mapOf([1, 1, 1], 2))).next).toEqual([0, 0, -1]);
  });

  it.each([
    [
      'a member twice',
      {
        members: [
          [1, 2],
          [1, 2],
        ],
      },
      'members',
    ],
    ['a member with an address that is no text', { members: [[1, 2, 3]] }, 'members'],
    ['members although it is frozen', { frozen: true }, 'frozen'],
    ['a token above its epoch, less what tokens are short of', { before: 10, token: [2 ** 22 - 9] }, '0'],
  ])('is damaged with %s', (_, over, name) => {
    const body = JSON.stringify({ ...JSON.parse(encodeMap(mapOf([5]))), ...over });
    expect(() => decodeMap(body)).toThrow(`"${name}"`);
    expect(() => decodeMap(body)).toThrow(/^shards\.json/);
  });
});

describe('the beginning of a map (T10)', () => {
  function scene(
    shards?: ClusterConfig['shards'],
    before: (request: string, bucket: MemoryBucket) => void = () => undefined,
    reported?: string,
  ) {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1);
    const cluster = { ...newCluster({ nodes: 3 }), bootstrapped: true, ...(shards && { shards }) };
    bucket.create('cluster.json', encodeCluster(cluster), {});
    const intercept: MemoryIntercept = async (call, apply) => {
      if ('key' in call) before(`${call.operation} ${call.key}`, bucket);
      return apply();
    };
    const store = new MemoryLeaseStore({ clock, intercept }, bucket);
    if (reported !== undefined) Object.assign(store, { epoch: async () => reported });
    const session = new StoreSession(store, clock, 1_000);
    const begin = (attempt = 1, count = 4) => ensureMap(session, seededRandom(1), count, {}, attempt);
    const epoch = () => decodeMap(bucket.read(SHARDS_KEY)?.body ?? '').epoch;
    return { bucket, begin, epoch };
  }

  it('is in series 0, and is recorded in the settings', async () => {
    const { begin, epoch } = scene();
    expect((await begin()).shards).toEqual({ count: 4, created: true });
    expect(epoch()).toBe(1);
    expect((await begin()).shards).toEqual({ count: 4, created: true });
    await expect(begin(1, 5)).rejects.toThrow(/^count: expected 4, the cluster's number of shards/);
  });

  it('is left to the task that has drawn, for some attempts, and then another series is drawn', async () => {
    const { begin, epoch } = scene({ count: 4, created: false });
    for (const attempt of [1, 2, 7])
      await expect(begin(attempt)).rejects.toThrow('another task makes the map');
    expect((await begin(8)).shards).toEqual({ count: 4, floor: epoch() - 1, created: true });
    expect(epoch()).toBeGreaterThan(2 ** 20);
  });

  it.each<[string, string, (bucket: MemoryBucket) => void]>([
    [
      'another task has changed cluster.json',
      'replace cluster.json',
      (bucket) => {
        const { body = '', etag = '' } = bucket.read('cluster.json') ?? {};
        bucket.replace('cluster.json', `${body} `, {}, etag);
      },
    ],
    [
      'another task makes the map',
      'create shards.json',
      (bucket) => void bucket.create(SHARDS_KEY, encodeMap({ epoch: 1, members: [], shards: empty(4) }), {}),
    ],
  ])('is tried again where %s', async (message, request, change) => {
    let isFirst = true;
    const { begin } = scene(undefined, (asked, bucket) => {
      if (asked === request && isFirst) change(bucket);
      if (asked === request) isFirst = false;
    });
    await expect(begin()).rejects.toThrow(message);
    expect((await begin()).shards).toMatchObject({ count: 4, created: true });
  });

  it('records first that the store has gone back, and leaves the map to a repair (T11)', async () => {
    const { begin, bucket } = scene(undefined, undefined, 'restored');
    expect(await begin()).toMatchObject({
      epoch: { store: 'restored', mark: expect.any(String) },
      shards: { count: 4, created: true },
    });
    expect(bucket.read(SHARDS_KEY)).toBeUndefined();
  });

  it('is recorded by a task that finds the first map of another one', async () => {
    const { bucket, begin } = scene({ count: 4, created: false });
    bucket.create(SHARDS_KEY, encodeMap({ epoch: 1, members: [], shards: empty(4) }), {});
    expect((await begin()).shards).toEqual({ count: 4, created: true });
  });

  it.each([
    ['a late map of an earlier series', encodeMap({ epoch: 1, members: [], shards: empty(4) })],
    ['what is no map', 'nonsense'],
  ])('replaces %s', async (_, body) => {
    const { bucket, begin, epoch } = scene({ count: 4, floor: 5, created: false });
    bucket.create(SHARDS_KEY, body, {});
    await expect(begin()).rejects.toThrow('another task makes the map');
    expect((await begin(8)).shards).toEqual({ count: 4, floor: epoch() - 1, created: true });
    expect(epoch()).toBeGreaterThan(2 ** 20);
  });
});
