import { describe, expect, it } from 'vitest';
import {
  LEADER_EPOCH,
  pathOf,
  ScriptedZooKeeper,
  SESSION_MS,
} from '../../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { Lease, LeaseEvent } from '../../../core/lease/model/lease.js';
import { acquireFromZooKeeper } from './acquire-from-zookeeper.js';
import { barrierGroupOf, readWidest } from './width-barrier.js';

// When ids of a group may be claimed that take more bits than those of the groups below, in virtual time.

const GATE = '/discovery/nodes/01';
const NARROW = '{"taskId":"narrow","idWidth":8}';
const WIDE = '{"taskId":"wide","idWidth":9}';
const WIDER = '{"taskId":"wider","idWidth":10}';

/** A tree whose group 00 is full, of znodes with this data. */
function crowded(data: string) {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  zookeeper.put('/discovery/nodes/00', '', undefined);
  for (let id = 8; id < 256; id += 1) zookeeper.put(pathOf(id), data, 'other');
  return { clock, zookeeper };
}

/** A tree whose groups 00 and 01 are full, of znodes that show the width of group 02. */
function crowdedTwice() {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  for (const group of ['00', '01']) zookeeper.put(`/discovery/nodes/${group}`, '', undefined);
  for (let id = 8; id < 512; id += 1) zookeeper.put(pathOf(id), WIDER, 'other');
  return { clock, zookeeper };
}

let seed = 0;

function claim(clock: VirtualClock, zookeeper: ScriptedZooKeeper, own: object = {}) {
  const events: LeaseEvent[] = [];
  seed += 1;
  const options = {
    zookeeper,
    clock,
    random: seededRandom(seed),
    taskId: 'task',
    onEvent: (event: LeaseEvent) => events.push(event),
    ...own,
  };
  const result: { lease?: Lease; error?: unknown } = {};
  acquireFromZooKeeper(options).then(
    (lease) => {
      result.lease = lease;
    },
    (error: unknown) => {
      result.error = error;
    },
  );
  const whys = () => events.flatMap((event) => (event.type === 'waiting' ? [event.why] : []));
  return { result, events, whys };
}

const markIn = ({ znodes }: ScriptedZooKeeper) => String(znodes.get(GATE)?.data);
const looksAt = ({ calls }: ScriptedZooKeeper, path: RegExp) =>
  calls.filter((call) => path.test(call)).length;

describe('an id of a wider group', () => {
  it.each<[string, string]>([
    ['makes narrow ids', NARROW],
    ['says nothing of a width', '{"taskId":"foreign"}'],
    ['says nothing that can be read', 'garbage'],
    ['says nonsense', '{"idWidth":99}'],
    ['was evicted before it made wide ids', '{"taskId":"narrow","idWidth":8,"evictedAt":1}'],
  ])(
    'may not be claimed while one node below %s, and may as soon as that one does, or is gone',
    async (_, data) => {
      for (const end of ['adopts', 'goes'] as const) {
        const { clock, zookeeper } = crowded(WIDE);
        zookeeper.overwrite(pathOf(100), data);
        const { result, whys } = claim(clock, zookeeper, { maxGroups: 2 });
        await clock.advance(20_000);
        expect(result).toEqual({});
        expect(new Set(whys())).toEqual(new Set(['others do not use 9 bits for a node id yet: node id 92']));
        if (end === 'adopts') zookeeper.overwrite(pathOf(100), WIDE);
        // Another task takes its place at once, so that nothing is free below.
        else zookeeper.put(pathOf(100), WIDE, 'next');
        await clock.advance(2_000);
        expect(result.lease?.id).toBe(248);
        expect(JSON.parse(markIn(zookeeper))).toEqual({ idWidth: 9, floor: 0 });
      }
    },
  );

  it('may be claimed by another task, though the one that looked first has got a lower id, and its reply was lost', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    zookeeper.overwrite(pathOf(100), NARROW);
    const first = claim(clock, zookeeper);
    await clock.advance(2_000);
    zookeeper.fault = async (operation) => {
      if (operation !== 'remove') return;
      zookeeper.fault = undefined;
      await new Promise(() => undefined);
    };
    zookeeper.znodes.delete(pathOf(20));
    await clock.advance(2_000);
    expect(first.result.lease?.id).toBe(12);
    zookeeper.overwrite(pathOf(100), WIDE);
    const next = claim(clock, new ScriptedZooKeeper(clock, zookeeper));
    await clock.advance(10_000);
    expect(next.result.lease?.id).toBe(248);
  });

  it('is stamped after all that narrow nodes below may have stamped, the gone ones too', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    const stamp = (id: string, data: string) => zookeeper.put(`/discovery/stamps/00/${id}`, data, undefined);
    stamp('08', `{"timestamp":${LEADER_EPOCH + 5_000}}`);
    stamp('09', `{"timestamp":${LEADER_EPOCH + 9_000}}`);
    stamp('0A', `{"timestamp":${LEADER_EPOCH + 90_000},"stampedUntil":${LEADER_EPOCH}}`);
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    const time = result.lease?.tenureTime;
    await time?.prepare();
    expect(time?.after).toBe(LEADER_EPOCH + 8_999);
    expect(time?.before()).toBeGreaterThan(LEADER_EPOCH + 8_999);
    expect(time?.idWidth).toBe(9);
  });

  it('waits for the nodes of every group below', async () => {
    const { clock, zookeeper } = crowdedTwice();
    zookeeper.overwrite(pathOf(300), WIDE);
    const { result, whys } = claim(clock, zookeeper);
    await clock.advance(20_000);
    expect([result, whys().at(-1)]).toEqual([{}, 'others do not use 10 bits for a node id yet: node id 292']);
    zookeeper.overwrite(pathOf(300), WIDER);
    await clock.advance(2_000);
    expect(result.lease?.id).toBe(504);
  });

  it('is stamped after all that nodes of every group below may have stamped', async () => {
    const { clock, zookeeper } = crowdedTwice();
    zookeeper.put('/discovery/stamps/00/08', `{"timestamp":${LEADER_EPOCH + 5_000}}`, undefined);
    zookeeper.put('/discovery/stamps/01/2C', `{"timestamp":${LEADER_EPOCH + 9_000}}`, undefined);
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    await result.lease?.tenureTime?.prepare();
    expect(result.lease?.tenureTime?.after).toBe(LEADER_EPOCH + 8_999);
  });

  it('does not wait because of an invalid stamp', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    zookeeper.put('/discovery/stamps/00/lock', `{"timestamp":${LEADER_EPOCH + 9_000}}`, undefined);
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    expect([result.lease?.id, JSON.parse(markIn(zookeeper))]).toEqual([248, { idWidth: 9, floor: 0 }]);
  });

  it('does not rely on a mark without a time', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    zookeeper.put(GATE, `{"idWidth":9,"floor":${Number.MAX_SAFE_INTEGER}}`, undefined);
    zookeeper.put('/discovery/stamps/00/08', `{"timestamp":${LEADER_EPOCH}}`, undefined);
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    expect([result.lease?.id, JSON.parse(markIn(zookeeper))]).toEqual([
      248,
      { idWidth: 9, floor: LEADER_EPOCH - 1 },
    ]);
  });

  it('lets a waiting task know that the mark is far ahead of the servers’ clock', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    zookeeper.put(GATE, `{"idWidth":9,"floor":${Date.UTC(2100, 0, 1)}}`, undefined);
    const { result, events } = claim(clock, zookeeper);
    await clock.advance(2_000);
    await result.lease?.tenureTime?.prepare();
    const damage = events.filter(({ type }) => type === 'damaged');
    const problem = expect.stringMatching(
      /^the mark of its group says that ids are stamped up to 2100-01-01T/,
    );
    expect(damage).toEqual([{ type: 'damaged', key: '/discovery/stamps/01/00', problem }]);
  });

  it.each<[string, (zookeeper: ScriptedZooKeeper) => void]>([
    ['changed', (zookeeper) => zookeeper.overwrite(GATE, 'by hand')],
    ['removed', ({ znodes }) => znodes.delete(GATE)],
  ])('is read again if the group was %s since all others were', async (_, change) => {
    const { clock, zookeeper } = crowded(WIDE);
    let changed = false;
    zookeeper.fault = async (operation, path) => {
      if (changed || operation !== 'setData' || path !== GATE) return;
      changed = true;
      change(zookeeper);
      zookeeper.overwrite(pathOf(100), NARROW);
    };
    const { result, whys } = claim(clock, zookeeper);
    await clock.advance(5_000);
    expect([changed, result, whys().at(-1)]).toEqual([
      true,
      {},
      'others do not use 9 bits for a node id yet: node id 92',
    ]);
    zookeeper.overwrite(pathOf(100), WIDE);
    await clock.advance(2_000);
    expect(result.lease?.id).toBe(248);
  });

  it('is acquired even if another task widens at the same time', async () => {
    const { clock, zookeeper } = crowdedTwice();
    zookeeper.put('/discovery/stamps', '', undefined);
    let once = false;
    zookeeper.fault = async (operation, path) => {
      if (once || operation !== 'setData' || path !== '/discovery/stamps') return;
      once = true;
      zookeeper.overwrite(path, '{"idWidth":9}');
    };
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    expect([once, result.lease?.id]).toEqual([true, 504]);
  });

  it('waits, if a stamp below cannot be read, for as long as its writer could have been ahead', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    zookeeper.put('/discovery/stamps/00/08', 'garbage', undefined);
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    await result.lease?.tenureTime?.prepare();
    expect(result.lease?.tenureTime?.after).toBe(LEADER_EPOCH + SESSION_MS);
  });

  it('begins after the floor even if its own node id was stamped long ago', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    zookeeper.put('/discovery/stamps/01/00', '{"timestamp":5,"stampedUntil":4}', undefined);
    zookeeper.put('/discovery/stamps/00/08', `{"timestamp":${LEADER_EPOCH + 1}}`, undefined);
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    await result.lease?.tenureTime?.prepare();
    expect(result.lease?.tenureTime?.after).toBe(LEADER_EPOCH);
  });

  it('leaves word of the width that outlasts the group, before it is looked whether all others use it', async () => {
    const { clock, zookeeper } = crowded(NARROW);
    claim(clock, zookeeper);
    await clock.advance(2_000);
    expect(JSON.parse(String(zookeeper.znodes.get('/discovery/stamps')?.data))).toEqual({ idWidth: 9 });
    const list = zookeeper.calls.lastIndexOf(
      'children /discovery/nodes/00',
      zookeeper.calls.indexOf(`read ${pathOf(8)}`),
    );
    const write = zookeeper.calls.findIndex((call) => /^(create|setData) .discovery.stamps$/.test(call));
    expect(write).toBeGreaterThan(0);
    expect(write).toBeLessThan(list);
  });

  it('is not claimed if the group was made again since it was read: that must be repeated', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    let remade = false;
    zookeeper.fault = async (operation, path) => {
      if (remade || operation !== 'multi' || !path.startsWith(`${GATE}/`)) return;
      remade = true;
      zookeeper.put(GATE, '', undefined);
      zookeeper.overwrite(pathOf(100), NARROW);
    };
    const { result, whys } = claim(clock, zookeeper);
    await clock.advance(5_000);
    expect([remade, result, whys().at(-1)]).toEqual([
      true,
      {},
      'others do not use 9 bits for a node id yet: node id 92',
    ]);
  });

  it('is not waited for when one below becomes free', async () => {
    const { clock, zookeeper } = crowded(NARROW);
    const { result } = claim(clock, zookeeper);
    await clock.advance(5_000);
    zookeeper.znodes.delete(pathOf(200));
    await clock.advance(1_100);
    expect(result.lease?.id).toBe(192);
    // No task is kept from looking for as long as that one lives.
    expect([...zookeeper.znodes.keys()].filter((path) => path.includes('gate'))).toEqual([]);
  });

  it('is given up in time, and the error names the holders that it waits for', async () => {
    const { clock, zookeeper } = crowded(NARROW);
    const { result } = claim(clock, zookeeper, { acquireTimeoutMs: 5_000 });
    await clock.advance(5_000);
    expect(result.error).toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
      message: expect.stringContaining('others do not use 9 bits for a node id yet: node id 0 and 247 more'),
    });
    expect([clock.sleepers, zookeeper.watches.size]).toEqual([0, 0]);
  });
});

describe('the cost of the barrier', () => {
  it('is one read for each task after the first, and nothing in the first group', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    claim(clock, zookeeper);
    await clock.advance(2_000);
    const second = new ScriptedZooKeeper(clock, zookeeper);
    const { result } = claim(clock, second);
    await clock.advance(0);
    expect(result.lease?.id).toBe(249);
    expect([looksAt(second, /read .*nodes\/01$/), looksAt(second, /nodes\/00\/|stamps/)]).toEqual([1, 0]);
    zookeeper.znodes.delete(pathOf(8));
    const third = new ScriptedZooKeeper(clock, second);
    claim(clock, third);
    await clock.advance(0);
    expect(looksAt(third, /nodes\/01|stamps/)).toBe(0);
  });

  it('is a few requests a second while one node below is waited for, not one for each node', async () => {
    const { clock, zookeeper } = crowded(WIDE);
    zookeeper.overwrite(pathOf(255), NARROW);
    claim(clock, zookeeper);
    await clock.advance(5_000);
    const before = zookeeper.calls.length;
    await clock.advance(60_000);
    expect(zookeeper.calls.length - before).toBeLessThan(60 * 8);
  });

  it('is no read of a higher group while a node of a lower one is narrow', async () => {
    const { clock, zookeeper } = crowdedTwice();
    zookeeper.overwrite(pathOf(100), WIDE);
    const { result } = claim(clock, zookeeper);
    await clock.advance(5_000);
    expect([result, looksAt(zookeeper, /read .*nodes\/01\//)]).toEqual([{}, 0]);
    zookeeper.overwrite(pathOf(100), WIDER);
    await clock.advance(2_000);
    expect([result.lease?.id, looksAt(zookeeper, /read .*nodes\/01\//)]).toEqual([504, 256]);
  });

  it('is borne by one task at a time, and by another one when that has gone', async () => {
    const { clock, zookeeper } = crowded(NARROW);
    zookeeper.put('/discovery/stamps', '', undefined);
    zookeeper.put('/discovery/stamps/gate-01', '', 'other');
    const { result, whys } = claim(clock, zookeeper);
    await clock.advance(8_000);
    expect(looksAt(zookeeper, /read .*nodes\/00\//)).toBe(0);
    // Every write goes through the leader, one that fails too.
    expect(looksAt(zookeeper, /^(create|setData) .*stamps/)).toBe(0);
    expect(whys().at(-1)).toBe('another task looks whether all others use 9 bits for a node id');
    for (let id = 8; id < 256; id += 1) zookeeper.overwrite(pathOf(id), WIDE);
    zookeeper.znodes.delete('/discovery/stamps/gate-01');
    await clock.advance(1_000);
    expect(result.lease?.id).toBe(248);
  });
});

describe('the widest ids there ever were', () => {
  const RECORD = '/discovery/stamps';

  /** A full group of nodes that make wider ids than it needs, and this on record. */
  function recorded(data: string | undefined) {
    const { clock, zookeeper } = crowded(WIDER);
    if (data !== undefined) zookeeper.put(RECORD, data, undefined);
    const widest = () => readWidest({ read: async (path) => zookeeper.znodes.get(path) });
    return { clock, zookeeper, widest };
  }

  /** Something that happens just before each of the first writes of the record. */
  function beforeWrites(zookeeper: ScriptedZooKeeper, ...acts: (() => void)[]): void {
    zookeeper.fault = async (operation, path) => {
      if (path === RECORD && operation !== 'read') acts.shift()?.();
    };
  }

  it.each([[undefined], [''], ['garbage'], ['{"idWidth":99}'], ['{"idWidth":8}']])(
    'are put on record where it says %j',
    async (data) => {
      const { clock, zookeeper, widest } = recorded(data);
      const { result } = claim(clock, zookeeper);
      await clock.advance(2_000);
      expect([result.lease?.id, await widest(), zookeeper.znodes.get(RECORD)?.stat.owner]).toEqual([
        248,
        9,
        undefined,
      ]);
    },
  );

  it('are never narrowed, even if another task widens at the same time', async () => {
    const { clock, zookeeper, widest } = recorded('{"idWidth":8}');
    beforeWrites(zookeeper, () => zookeeper.overwrite(RECORD, '{"idWidth":10}'));
    const { result } = claim(clock, zookeeper);
    await clock.advance(2_000);
    expect([result.lease?.id, await widest()]).toEqual([248, 10]);
  });

  it('are recorded even if another task records fewer bits at the same time', async () => {
    const { clock, zookeeper, widest } = recorded('');
    beforeWrites(
      zookeeper,
      () => zookeeper.overwrite(RECORD, '{"idWidth":8}'),
      () => zookeeper.znodes.delete(RECORD),
    );
    const { result } = claim(clock, zookeeper);
    await clock.advance(5_000);
    expect([result.lease?.id, await widest()]).toEqual([248, 9]);
  });

  it('keep the ids of a wider group back while another client changes the record all the time', async () => {
    const { clock, zookeeper } = recorded('');
    zookeeper.fault = async (operation, path) => {
      if (path === RECORD && operation !== 'read') zookeeper.overwrite(RECORD, 'mine');
    };
    const { result, whys } = claim(clock, zookeeper, { acquireTimeoutMs: 60_000 });
    await clock.advance(60_000);
    expect(result.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
    expect(whys().at(-1)).toMatch(/^another task was faster/);
    expect(zookeeper.calls.length).toBeLessThan(60 * 10);
  });
});

it('is at the lowest group of each width', () => {
  expect([0, 1, 2, 3, 4, 7, 8, 127, 128, 255].map(barrierGroupOf)).toEqual([
    0, 1, 2, 2, 4, 4, 8, 64, 128, 128,
  ]);
});
