import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  type ClusterConfig,
  checkWanted,
  decodeCluster,
  encodeCluster,
  idWidthFor,
  newCluster,
  settled,
} from './cluster-config.js';
import { LeaseUnreadableError, nativeCodec } from './lease-codec.js';
import type { LeaseState } from './lease-state.js';

const golden = (name: string) =>
  readFileSync(new URL(`../../../../test/fixtures/leases/${name}.json`, import.meta.url), 'utf8');

const held: LeaseState = {
  kind: 'held',
  taskId: '0f9d3c2e5b7a4d6f8e1c',
  version: 7,
  timestamp: 1_795_219_212_534,
  durationMs: 15_000,
  knownNodes: { 0: 3, 2: 11 },
  acquiredAt: 1_795_219_197_534,
  nonce: '5f2b8c0d9e4a7163b1c8d2f0',
  renewal: 4,
  idWidth: 9,
  narrowIdsUntil: 1_795_219_199_017,
};
const states: [string, LeaseState, Record<string, string>][] = [
  ['vacant', { kind: 'vacant' }, {}],
  ['held', held, { taskid: '0f9d3c2e5b7a4d6f8e1c', version: '7', expiry: '1795219212534' }],
  [
    'released',
    { kind: 'released', version: 7, timestamp: 1_795_219_212_534, durationMs: 0, stampedUntil: undefined },
    { version: '7', expiry: '1795219212534' },
  ],
  [
    'released-stamped',
    {
      kind: 'released',
      version: 7,
      timestamp: 1_795_219_212_534,
      durationMs: 0,
      stampedUntil: 1_795_219_199_017,
    },
    { version: '7', expiry: '1795219212534' },
  ],
  [
    'evicted',
    {
      kind: 'released',
      version: 8,
      timestamp: 1_795_219_212_534,
      durationMs: 15_000,
      stampedUntil: undefined,
    },
    { version: '8', expiry: '1795219212534' },
  ],
  [
    'retired',
    {
      kind: 'retired',
      version: 7,
      timestamp: 1_795_219_212_534,
      durationMs: 0,
      stampedUntil: undefined,
      generation: 3,
    },
    { version: '7', expiry: '1795219212534' },
  ],
];

describe('the native lease format', () => {
  it.each(states)('writes a %s lease as it always has', (name, state, metadata) => {
    expect(nativeCodec.encode(state)).toStrictEqual({ body: golden(name), metadata });
  });

  it.each(states)('reads a %s lease, with its metadata or without', (name, state, metadata) => {
    for (const shown of [{}, metadata]) expect(nativeCodec.decode(golden(name), shown)).toEqual(state);
  });

  it('has the marks of sticky key and epoch in the metadata alone, and ignores what is no mark', () => {
    const marks = { sticky: '0123456789abcdef', epoch: 'fedcba9876543210' };
    const { body, metadata } = nativeCodec.encode({ ...held, ...marks });
    expect([body, metadata]).toEqual([golden('held'), expect.objectContaining(marks)]);
    expect(nativeCodec.decode(body, metadata)).toEqual({ ...held, ...marks });
    for (const bad of ['', '0123456789abcde', '00123456789abcdef', '0123456789abcdeF', 'x0123456789abcde'])
      expect(nativeCodec.decode(body, { sticky: bad, epoch: bad })).toEqual(held);
  });

  it('takes what a lease does not say for what is safe', () => {
    expect(nativeCodec.decode('{"version":1,"taskId":"a","timestamp":5,"durationMs":1}', {})).toEqual({
      ...{ kind: 'held', taskId: 'a', version: 1, timestamp: 5, durationMs: 1, knownNodes: {} },
      ...{ nonce: 'none', renewal: 0, acquiredAt: 0, idWidth: 8, narrowIdsUntil: 5 },
    });
    const unknown = { kind: 'released', version: 3, timestamp: 0, durationMs: 0 };
    expect(nativeCodec.decode('{"taskId":null,"version":3}', {})).toEqual(unknown);
    expect(nativeCodec.decode('', { version: '3' })).toEqual(unknown);
    expect(nativeCodec.decode('', { version: '0' })).toEqual({ kind: 'vacant' });
  });

  it('reads the greatest numbers that leave room for next ones', () => {
    const most = { version: 2 ** 52, timestamp: 2 ** 48 - 1, durationMs: 86_400_000 };
    expect(nativeCodec.decode(JSON.stringify({ released: true, ...most }), {})).toMatchObject(most);
  });

  it.each<[string, string, Record<string, string>, string]>([
    ['an older body', golden('held'), { version: '8' }, 'has version 7, where version 8 was written'],
    ['no body', '', { version: '5', taskid: 'a' }, 'has been emptied: task a held it'],
    ['no body', '', { version: '5x' }, '"version"'],
    ['no body', '', { version: ' 5' }, '"version"'],
    ['no body', '', { version: '5e0' }, '"version"'],
    ['no body', '', { version: '5', expiry: '1x' }, '"expiry"'],
  ])('refuses %s with metadata that say otherwise', (_, body, metadata, problem) => {
    expect(() => nativeCodec.decode(body, metadata)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(`^lease object .*${problem}`),
        isForeign: false,
      }),
    );
  });

  it('passes the cause of a failure on', () => {
    expect(new LeaseUnreadableError('is no map', 'why')).toMatchObject({ cause: 'why' });
  });

  it('shows the beginning of what is not JSON', () => {
    expect(() => nativeCodec.decode('x'.repeat(101), {})).toThrow(`is not JSON: "${'x'.repeat(100)}"`);
  });

  it('shows no more than the beginning of a value that is not usable', () => {
    const body = golden('held').replace(/"version":\d+/, `"version":"${'x'.repeat(200)}"`);
    expect(() => nativeCodec.decode(body, {})).toThrow(
      new RegExp(`no usable "version": .* from 1 to ${2 ** 52}, got "${'x'.repeat(99)}$`),
    );
  });

  it.each(['version', 'unknown'])('refuses a %s that is nested too deep to be shown or written', (field) => {
    const deep = '['.repeat(20_000) + ']'.repeat(20_000);
    const body = `${golden('held').trimEnd().slice(0, -1)},"${field}":${deep}}`;
    expect(() => nativeCodec.decode(body, {})).toThrow(/has more than 1000 levels of JSON$/);
  });

  it('leaves out the mark of an epoch that stores would refuse in metadata', () => {
    expect(nativeCodec.encode({ ...held, epoch: 'é\n' }).metadata).not.toHaveProperty('epoch');
  });

  it('ignores fields that it does not know, and invalid entries of the mapping', () => {
    const body = JSON.stringify({
      ...JSON.parse(golden('held')),
      region: 'eu',
      knownNodesMapping: { 0: 3, 2: 11, x1: 1, '1x': 1, 4: 'five', 5: -1, 6: 2 ** 52 + 1 },
    });
    expect(nativeCodec.decode(body, {})).toEqual(held);
    const known = { 10: 0, 11: 2 ** 52 };
    for (const [mapping, knownNodes] of [
      [known, known],
      [null, {}],
      ['', {}],
    ]) {
      const other = JSON.stringify({ ...JSON.parse(golden('held')), knownNodesMapping: mapping });
      expect(nativeCodec.decode(other, {})).toEqual({ ...held, knownNodes });
    }
  });

  it('keeps the mark and the address of a task that takes part in shards, and ignores invalid ones', () => {
    const marked = { ...held, shards: { epoch: 41 }, address: '10.0.0.7:8080' };
    const { body } = nativeCodec.encode(marked);
    expect(JSON.parse(body)).toMatchObject({ shards: { epoch: 41 }, address: '10.0.0.7:8080' });
    expect(nativeCodec.decode(body, {})).toEqual(marked);
    for (const bad of [{ shards: null }, { shards: true, address: 7 }, { shards: { epoch: 'x' } }])
      expect(nativeCodec.decode(JSON.stringify({ ...JSON.parse(golden('held')), ...bad }), {})).toEqual(held);
  });

  it.each([
    ['that is one', '2/a/b/r/me 1/5/9/x/other', true],
    ['with characters that a header cannot have', '2/a/b/r/m\u00e9', false],
    ['with a line feed', '2/a/b/r/me\n1/5/9/x/other', false],
    ['of one tenure', '2/a/b/r/me', true],
    ['that is as long as can be', 'x'.repeat(1_000), true],
    ['that is too long', 'x'.repeat(1_001), false],
  ])('carries a history %s', (_, history, isKept) => {
    const state = nativeCodec.decode(golden('held'), { history });
    expect(nativeCodec.encode(state).metadata.history).toBe(isKept ? history : undefined);
  });

  it('reads an empty body with a version in the metadata as released at that version', () => {
    expect(nativeCodec.decode('', { version: '5', expiry: '1795219212534' })).toEqual({
      kind: 'released',
      version: 5,
      timestamp: 1_795_219_212_534,
      durationMs: 0,
      stampedUntil: undefined,
    });
  });

  it('keeps every tombstone small and every held lease large, so that a LIST distinguishes them', () => {
    const most = Number.MAX_SAFE_INTEGER;
    const tombstones: LeaseState[] = [
      { kind: 'released', version: most, timestamp: most, durationMs: 86_400_000, stampedUntil: undefined },
      { kind: 'released', version: most, timestamp: most, durationMs: 0, stampedUntil: most },
      {
        kind: 'retired',
        version: most,
        timestamp: most,
        durationMs: 0,
        stampedUntil: undefined,
        generation: 1_000_000,
      },
    ];
    for (const state of tombstones)
      expect(nativeCodec.encode(state).body.length).toBeLessThanOrEqual(nativeCodec.tombstoneMaxBytes);
    const least: LeaseState = {
      ...held,
      taskId: 'a',
      version: 1,
      timestamp: 0,
      durationMs: 1,
      knownNodes: {},
      acquiredAt: 0,
      renewal: 0,
    };
    expect(nativeCodec.encode(least).body.length).toBeGreaterThan(nativeCodec.tombstoneMaxBytes);
  });

  it.each<[string, string]>([
    ['not json', 'is not JSON'],
    ['[1]', 'is not a JSON object'],
    ['null', 'is not a JSON object'],
    ['7', 'is not a JSON object'],
    ['{}', '"version"'],
    ['{"version":0}', '"version"'],
    ['{"version":1.5}', '"version"'],
    ['{"version":9007199254740993}', '"version"'],
    ['{"version":1,"taskId":"","timestamp":1,"durationMs":1}', '"taskId"'],
    ['{"version":1,"taskId":7,"timestamp":1,"durationMs":1}', '"taskId"'],
    ['{"version":1,"taskId":"a","timestamp":1}', '"durationMs"'],
    ['{"version":1,"taskId":"a","timestamp":1,"durationMs":0}', '"durationMs"'],
    ['{"version":1,"taskId":"a","timestamp":1,"durationMs":86400001}', '"durationMs"'],
    ['{"retired":true,"version":1,"timestamp":1}', '"generation"'],
    ...['acquiredAt', 'idWidth', 'narrowIdsUntil', 'nonce', 'renewal'].map((name): [string, string] => [
      JSON.stringify({ ...JSON.parse(golden('held')), [name]: -1 }),
      `"${name}"`,
    ]),
    [`{"version":${2 ** 53 - 1},"taskId":"a","timestamp":1,"durationMs":1}`, '"version"'],
    [`{"version":1,"taskId":"a","timestamp":${2 ** 48},"durationMs":1}`, '"timestamp"'],
    [`{"released":true,"version":1,"timestamp":1,"stampedUntil":${2 ** 53 - 1}}`, '"stampedUntil"'],
  ])('refuses %s and says why', (body, problem) => {
    expect(() => nativeCodec.decode(body, {})).toThrow(problem);
  });
});

describe('a lease of Camunda 8', () => {
  const held =
    '{"taskId":"task-A","timestamp":1795350753690,"nodeInstance":{"id":0,"version":1},"knownVersionMappings":{"mappingsByNodeId":{"0":1}}}';

  it.each([
    ['held', held, { taskid: 'task-A', version: '1', acquirable: 'true' }],
    ['held, of the alpha', held, { taskid: 'task-A', version: '1' }],
    ['released', '', { taskid: '', version: '4', acquirable: 'true' }],
    ['given up', '', { taskid: '', version: '4', acquirable: 'false' }],
  ])('is distinguished from ours: %s', (_, body, metadata: Record<string, string>) => {
    expect(() => nativeCodec.decode(body, metadata)).toThrow(
      expect.objectContaining({ code: 'LEASE_UNREADABLE', isForeign: true }),
    );
  });
});

describe('cluster.json', () => {
  const config = {
    size: 20,
    durationMs: 15_000,
    graceMs: 1_000,
    longestMs: 15_000,
    idWidth: 8,
    idFloor: 0,
    bootstrapped: true,
    generation: 0,
    peak: 20,
    proven: true,
  };

  it('is written and read as it always has been', () => {
    expect(encodeCluster(config)).toBe(golden('cluster'));
    expect(decodeCluster(golden('cluster'))).toStrictEqual(config);
  });

  it('is read with all that it may have', () => {
    const times = { durationMs: 15_000, graceMs: 1_000 };
    const all: ClusterConfig = {
      ...{ ...config, name: 'web', longestMs: 60_000, peak: 30, proven: false },
      ...{ proofsTakenOver: 2, proofFailed: 'it lies', once: true },
      tuned: [{ at: 5, from: { ...times, durationMs: 60_000 }, to: times }],
      epoch: { store: 's', mark: 'm', settling: true },
      shards: { count: 64, floor: 7, created: false },
    };
    const body = encodeCluster(all);
    expect(decodeCluster(body)).toStrictEqual(all);
    expect(decodeCluster(encodeCluster({ ...all, proven: true }, body))).not.toHaveProperty('proofFailed');
    expect(settled(all)).toEqual({ ...all, epoch: { store: 's', mark: 'm', settling: false } });
    expect(settled(config)).toBe(config);
  });

  it.each([{ store: 's' }, { mark: 'm' }])(
    'may have an epoch without a mark, or of a store without one: %j',
    (epoch) => {
      expect(decodeCluster(encodeCluster({ ...config, epoch })).epoch).toEqual(epoch);
    },
  );

  it('is new with the wanted settings, and others that fit to them', () => {
    const rest = { bootstrapped: false, generation: 0, idFloor: 0, proven: true };
    expect(newCluster({})).toMatchObject({ size: 16, durationMs: 15_000, graceMs: 1_000, ...rest });
    expect(newCluster({ durationMs: 3_600_000 })).toMatchObject({ graceMs: 3_600, longestMs: 3_600_000 });
    expect(newCluster({ nodes: 65_528, graceMs: 3_600_000 })).toMatchObject({ size: 65_528, idWidth: 16 });
  });

  it.each([
    [{ nodes: 0 }, 'nodes: expected a whole number from 1 to 65528, got 0'],
    [{ nodes: 65_529 }, 'nodes: expected'],
    [{ nodes: 1.5 }, 'nodes: expected'],
    [
      { durationMs: 999 },
      'durationMs: expected a whole number of milliseconds from 1000 to 86400000, got 999',
    ],
    [
      { graceMs: 14 },
      'graceMs: expected a whole number of milliseconds (a thousandth of the duration, since clocks drift) from 15 to 3600000, got 14',
    ],
  ])('is not made of %j', (wanted, message) => {
    expect(() => checkWanted(wanted)).toThrow(message);
  });

  it('leaves out what is not usable, where it decides nothing', () => {
    const times = { durationMs: 1, graceMs: 1 };
    const tuned = [
      null,
      { at: 1 },
      { at: 1, from: times },
      { at: 1, to: times },
      { at: 'x', from: times, to: times },
      { at: '2026-01-01', from: times, to: times },
      { at: 1.5, from: times, to: times },
      // No date.
      { at: 8.7e15, from: times, to: times },
      { at: -8.7e15, from: times, to: times },
      { at: { toString: 1, valueOf: 1 }, from: times, to: times },
    ];
    for (const bad of [{ name: 7 }, { proofFailed: 7 }, { once: 1 }, { tuned: 'x' }])
      expect(decodeCluster(JSON.stringify({ ...config, ...bad }))).toStrictEqual(config);
    expect(decodeCluster(JSON.stringify({ ...config, tuned })).tuned).toEqual([]);
  });

  it('has, once it has grown, the timestamp after which the first ids of its new nodes begin', () => {
    const grown = { ...config, size: 300, peak: 300, idWidth: 9, idFloor: 1_795_219_212_534 };
    expect(JSON.parse(encodeCluster(grown, encodeCluster(config)))).toMatchObject({
      size: 300,
      idWidth: 9,
      idFloor: 1_795_219_212_534,
    });
    expect(decodeCluster(encodeCluster(grown))).toEqual(grown);
  });

  it('is corrected if it says that ids are narrower than its node ids need', () => {
    expect(decodeCluster(encodeCluster({ ...config, size: 300, idWidth: 8 })).idWidth).toBe(9);
  });

  it('says how many shards there are, once a task has asked for them', () => {
    const shards = { count: 64, created: true };
    const body = encodeCluster({ ...config, shards }, golden('cluster'));
    expect(JSON.parse(body)).toEqual({ ...JSON.parse(golden('cluster')), shards });
    expect(decodeCluster(body).shards).toEqual(shards);
    expect(decodeCluster(encodeCluster(config, body))).toEqual({ ...config, shards });
    for (const bad of ['null', '64', '{"count":0}', '{"count":4097}'])
      expect(() => decodeCluster(`${golden('cluster').trim().slice(0, -1)},"shards":${bad}}`)).toThrow(
        '"count"',
      );
  });

  it('keeps fields of other versions when it is rewritten', () => {
    expect(JSON.parse(encodeCluster(config, '{"size":4,"drain":{"from":8}}'))).toEqual({
      ...JSON.parse(golden('cluster')),
      drain: { from: 8 },
    });
  });

  it('records it as long as the store has not passed the probe', () => {
    const body = encodeCluster({ ...config, proven: false });
    expect(JSON.parse(body)).toEqual({ ...JSON.parse(golden('cluster')), proven: false });
    expect(decodeCluster(body).proven).toBe(false);
    expect(encodeCluster(config, body)).toBe(golden('cluster'));
  });

  it.each([
    ['', 'is not JSON'],
    ['{"size":0,"durationMs":15000,"graceMs":1000,"bootstrapped":true}', '"size"'],
    ['{"size":65529,"durationMs":15000,"graceMs":1000,"bootstrapped":true}', '"size"'],
    ['{"size":1,"durationMs":15000,"graceMs":1000}', '"bootstrapped"'],
    ['{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"idWidth":17}', '"idWidth"'],
    ['{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"idFloor":-1}', '"idFloor"'],
    ['{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"peak":65529}', '"peak"'],
    ['{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"peak":0}', '"peak"'],
    ['{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"longestMs":1}', '"longestMs"'],
    [
      '{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"proofsTakenOver":-1}',
      '"proofsTakenOver"',
    ],
    [
      '{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"epoch":{"store":7}}',
      'has no usable "epoch"',
    ],
    [
      '{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"epoch":{"mark":7}}',
      'has no usable "epoch"',
    ],
    [
      '{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"shards":{"count":1,"floor":0}}',
      '"floor"',
    ],
    [
      '{"size":1,"durationMs":1,"graceMs":1000,"bootstrapped":true}',
      '"durationMs": expected a whole number from 1000 to 86400000, got 1',
    ],
    ['{"size":1,"durationMs":1e15,"graceMs":1000,"bootstrapped":true}', '"durationMs"'],
    [
      '{"size":1,"durationMs":15000,"graceMs":0,"bootstrapped":true}',
      '"graceMs": expected a whole number from 15 to 3600000, got 0',
    ],
    ['{"size":1,"durationMs":15000,"graceMs":1e12,"bootstrapped":true}', '"graceMs"'],
    [`{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"idFloor":${2 ** 48}}`, '"idFloor"'],
    [
      `{"size":1,"durationMs":15000,"graceMs":1000,"bootstrapped":true,"generation":${2 ** 53 - 1}}`,
      '"generation"',
    ],
  ])('refuses %s', (body, problem) => {
    expect(() => decodeCluster(body)).toThrow(problem);
  });

  it.each([
    [1, 8],
    [248, 8],
    [249, 9],
    [504, 9],
    [505, 10],
    [65_528, 16],
  ])('a cluster of %i ids needs %i bits, the 8 reserved ids included', (size, width) => {
    expect(idWidthFor(size)).toBe(width);
  });
});
