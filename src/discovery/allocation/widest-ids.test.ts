import { describe, expect, it } from 'vitest';
import { ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { BoundSession } from './bound-session.js';
import { raiseWidest, readWidest } from './widest-ids.js';

const RECORD = '/discovery/stamps';

function record(data?: string) {
  const zookeeper = new ScriptedZooKeeper(new VirtualClock());
  if (data !== undefined) zookeeper.put(RECORD, data, undefined);
  return { zookeeper, session: new BoundSession(zookeeper, 'a') };
}

/** Something that happens just before each of the first writes. */
function beforeWrites(zookeeper: ScriptedZooKeeper, ...acts: (() => void)[]): void {
  zookeeper.fault = async (operation) => {
    if (operation !== 'read') acts.shift()?.();
  };
}

describe('the widest ids there ever were', () => {
  it.each([[undefined], [''], ['garbage'], ['{"idWidth":99}'], ['{"idWidth":8}']])('are put on record where it says %j', async (data) => {
    const { zookeeper, session } = record(data);
    await raiseWidest(session, 9);
    expect(await readWidest(session)).toBe(9);
    expect(zookeeper.znodes.get(RECORD)?.stat.owner).toBeUndefined();
  });

  it('are never narrowed, also where another task widens at the same time', async () => {
    const { zookeeper, session } = record('{"idWidth":8}');
    beforeWrites(zookeeper, () => zookeeper.overwrite(RECORD, '{"idWidth":10}'));
    await raiseWidest(session, 9);
    expect(await readWidest(session)).toBe(10);
    await raiseWidest(session, 9);
    expect(await readWidest(session)).toBe(10);
  });

  it('are put on record also where another task does so, less wide, at the same time', async () => {
    const { zookeeper, session } = record();
    beforeWrites(
      zookeeper,
      () => zookeeper.put(RECORD, '', undefined),
      () => zookeeper.overwrite(RECORD, '{"idWidth":9}'),
      () => zookeeper.znodes.delete(RECORD),
    );
    await raiseWidest(session, 10);
    expect(await readWidest(session)).toBe(10);
  });

  it('are given up where somebody changes the record all the time', async () => {
    const { zookeeper, session } = record('');
    zookeeper.fault = async (operation) => {
      if (operation !== 'read') zookeeper.overwrite(RECORD, 'mine');
    };
    await expect(raiseWidest(session, 9)).rejects.toMatchObject({ fault: 'bad-version' });
    expect(session.requests).toBeLessThan(100);
  });
});
