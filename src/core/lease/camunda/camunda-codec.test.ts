import { describe, expect, it } from 'vitest';
import { nativeCodec } from '../model/lease-codec.js';
import { decodeCamundaLease, decodeCamundaRestore } from './camunda-codec.js';

// Bytes as Camunda writes them, seen through a proxy.
const HELD =
  '{"taskId":"task-A","timestamp":1795350753690,"nodeInstance":{"id":0,"version":1},"knownVersionMappings":{"mappingsByNodeId":{"0":1}}}';
const RENEWED =
  '{"taskId":"task-A","timestamp":1795350756794,"nodeInstance":{"id":0,"version":1},"knownVersionMappings":{"mappingsByNodeId":{"0":1,"1":7}}}';
const METADATA = { taskid: 'task-A', version: '1', acquirable: 'true' };
const HELD_LEASE = {
  ...{
    kind: 'held',
    version: 1,
    taskId: 'task-A',
    timestamp: 1_795_350_753_690,
    nodeId: 0,
    knownNodes: { 0: 1 },
    acquirable: true,
  },
};
const RELEASED = { taskid: '', version: '9', acquirable: 'true' };

/** The decoded object, with the lease and all other fields in one object. */
function decoded(body: string, metadata: Record<string, string>) {
  const { lease, ...facts } = decodeCamundaLease(body, metadata);
  return { ...lease, ...facts };
}

/** The body of a held lease with changed fields. */
const held = (change: object) => JSON.stringify({ ...JSON.parse(HELD), ...change });
const { timestamp: _, ...timeless } = JSON.parse(HELD);

describe('what Camunda writes is read:', () => {
  it.each<[string, string, Record<string, string>, Record<string, unknown>]>([
    ['an id that was never held', '', {}, { kind: 'vacant', nodeId: undefined, acquirable: true }],
    ['a held one', HELD, METADATA, HELD_LEASE],
    [
      'a renewed one',
      RENEWED,
      METADATA,
      { ...HELD_LEASE, timestamp: 1_795_350_756_794, knownNodes: { 0: 1, 1: 7 } },
    ],
    ['one of the alphas', HELD, { taskid: 'task-A', version: '1' }, HELD_LEASE],
    [
      'one whose holder knows no other node',
      held({ knownVersionMappings: { mappingsByNodeId: {} } }),
      METADATA,
      { ...HELD_LEASE, knownNodes: {} },
    ],
    [
      'one whose holder knows a node of another zone',
      held({ knownVersionMappings: { mappingsByNodeId: { 0: 1, 'zone-b/0': 4 } } }),
      METADATA,
      { ...HELD_LEASE, knownNodes: { 0: 1, 'zone-b/0': 4 } },
    ],
    ['a released one', '', RELEASED, { kind: 'released', version: 9, durationMs: 0 }],
    [
      'one that scaling down has given up',
      '',
      { ...RELEASED, acquirable: 'false' },
      { kind: 'retired', version: 9, acquirable: false },
    ],
  ])('%s', (_name, body, metadata, lease) => {
    expect(decoded(body, metadata)).toMatchObject(lease);
  });

  it('a restore', () => {
    expect(decodeCamundaRestore('{"restoreId":"r1","restoredNodes":[0]}')).toEqual([0]);
    expect(() => decodeCamundaRestore('{"restoreId":"r1"}')).toThrow(
      /has no usable "restoredNodes": expected a list/,
    );
  });
});

describe('what else Camunda accepts is read:', () => {
  it.each<[string, string, Record<string, string>, Record<string, unknown>]>([
    ['an empty body with a version', '', { version: '9' }, { kind: 'released', version: 9 }],
    [
      'an empty body with a version and an empty task',
      '',
      { version: '9', taskid: '' },
      { kind: 'released', version: 9 },
    ],
    ['further metadata', HELD, { ...METADATA, foo: 'bar' }, HELD_LEASE],
    [
      'another order of the fields',
      JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(HELD)).reverse())),
      METADATA,
      HELD_LEASE,
    ],
    ['blanks', JSON.stringify(JSON.parse(HELD), undefined, 2), METADATA, HELD_LEASE],
    [
      'numbers as texts',
      held({ timestamp: '4', nodeInstance: { id: '0', version: '1' } }),
      METADATA,
      { ...HELD_LEASE, timestamp: 4 },
    ],
    [
      'a time with a fraction, which is cut off',
      held({ timestamp: 1_795_350_753_690.9 }),
      METADATA,
      HELD_LEASE,
    ],
    ['no time', JSON.stringify(timeless), METADATA, { ...HELD_LEASE, timestamp: 0 }],
    [
      'the id of another object',
      held({ nodeInstance: { id: 3, version: 1 } }),
      METADATA,
      { ...HELD_LEASE, nodeId: 3 },
    ],
  ])('%s', (_name, body, metadata, lease) => {
    expect(decoded(body, metadata)).toMatchObject(lease);
  });

  it('numbers beyond those of JavaScript, rounded; an endless time as the last date', () => {
    const body = HELD.replace('"version":1', '"version":9223372036854775807').replace(
      '1795350753690',
      '9223372036854775807',
    );
    const lease = decoded(body, { ...METADATA, version: '9223372036854775807' });
    expect(lease).toMatchObject({ version: 2 ** 63, timestamp: 8.64e15 });
    expect(
      decoded(body.replace('9223372036854775807', '-5'), { ...METADATA, version: '9223372036854775807' }),
    ).toMatchObject({
      timestamp: 0,
    });
  });
});

it('a text of megabytes is shown as its beginning and its length', () => {
  const taskId = 'x'.repeat(5 * 1024 * 1024);
  const shown = `${'x'.repeat(200)}… (5242880 characters)`;
  expect(decoded(held({ taskId }), { ...METADATA, taskid: taskId })).toMatchObject({
    kind: 'held',
    taskId: shown,
  });
  const problemOf = (body: string, metadata: Record<string, string>) => {
    try {
      return `${JSON.stringify(decoded(body, metadata))}`;
    } catch (error) {
      return String(error);
    }
  };
  for (const [body, metadata] of [
    [held({ taskId }), METADATA],
    [HELD, { ...METADATA, taskid: taskId }],
    [held({ [taskId]: 1 }), METADATA],
    [held({ nodeInstance: taskId }), METADATA],
    ['', { version: taskId }],
  ] as const)
    expect(problemOf(body, metadata)).toMatch(/^LeaseUnreadableError: .{1,600}$/);
});

describe('what Camunda throws at is damaged, with the reason:', () => {
  const native = nativeCodec.encode({
    ...{
      kind: 'held',
      taskId: 'task-A',
      version: 1,
      timestamp: 5,
      durationMs: 15_000,
      knownNodes: {},
      nonce: 'n',
      renewal: 0,
    },
    ...{ acquiredAt: 0, idWidth: 8, narrowIdsUntil: 0 },
  });
  const tombstone = nativeCodec.encode({
    kind: 'released',
    version: 3,
    timestamp: 5,
    durationMs: 0,
    stampedUntil: undefined,
  });

  it.each<[string, string, Record<string, string>, RegExp]>([
    [
      'metadata without a version',
      '',
      { taskid: '' },
      /has no usable version in its metadata: expected a whole number, got none/,
    ],
    ['foreign metadata alone', '', { foo: 'bar' }, /has no usable version in its metadata/],
    ['a version that is no number', '', { version: 'x' }, /expected a whole number, got "x"/],
    ['a body without metadata', HELD, {}, /has a body and no metadata/],
    ['a body with foreign metadata alone', HELD, { foo: 'bar' }, /has no usable version in its metadata/],
    [
      'another task in the metadata',
      HELD,
      { ...METADATA, taskid: 'B' },
      /has the task "task-A" in its body and "B" in its metadata/,
    ],
    [
      'no task in the metadata',
      HELD,
      { version: '1' },
      /has the task "task-A" in its body and none in its metadata/,
    ],
    [
      'another version in the metadata',
      HELD,
      { ...METADATA, version: '2' },
      /has the version 1 in its body and 2 in its metadata/,
    ],
    [
      'an unknown field',
      held({ nonce: 'n' }),
      METADATA,
      /has the field "nonce" in its body, which Camunda refuses/,
    ],
    [
      'one further in',
      held({ nodeInstance: { id: 0, version: 1, x: 1 } }),
      METADATA,
      /has the field "x" in its nodeInstance, which Camunda refuses/,
    ],
    [
      'no taskId',
      held({ taskId: undefined }),
      METADATA,
      /has no usable "taskId": expected a non-empty string, got nothing/,
    ],
    ['an empty taskId', held({ taskId: '' }), METADATA, /has no usable "taskId"/],
    [
      'no nodeInstance',
      held({ nodeInstance: null }),
      METADATA,
      /has no usable "nodeInstance": expected an object, got null/,
    ],
    [
      'no known versions',
      held({ knownVersionMappings: undefined }),
      METADATA,
      /has no usable "knownVersionMappings"/,
    ],
    [
      'a known version that is no number',
      held({ knownVersionMappings: { mappingsByNodeId: { 1: 'a' } } }),
      METADATA,
      /has no usable "mappingsByNodeId"/,
    ],
    [
      'a negative version',
      held({ nodeInstance: { id: 0, version: -1 } }),
      { ...METADATA, version: '-1' },
      /"nodeInstance.version"/,
    ],
    [
      'a number without end',
      HELD.replace('1795350753690', '1e400'),
      METADATA,
      /has no usable "timestamp": expected a whole number/,
    ],
    ['no JSON', 'free', METADATA, /is not JSON: "free"/],
    ['a blank body', ' ', METADATA, /is not JSON: " "/],
    ['an empty object', '{}', METADATA, /has no usable "taskId"/],
    ['a list', '[]', METADATA, /is not a JSON object/],
    [
      'a lease of nodelease',
      native.body,
      native.metadata,
      /has the field "version" in its body, which Camunda refuses/,
    ],
    [
      'a tombstone of nodelease',
      tombstone.body,
      tombstone.metadata,
      /has the field "released" in its body, which Camunda refuses/,
    ],
  ])('%s', (_name, body, metadata, problem) => {
    expect(() => decodeCamundaLease(body, metadata)).toThrow(problem);
  });
});
