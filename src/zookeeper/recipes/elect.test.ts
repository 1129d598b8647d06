import { describe, expect, it } from 'vitest';
import { fails, ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { CallOptions, ZooKeeper } from '../client/zookeeper.js';
import { participants, watchLeader } from './elect.js';

const PATH = '/leader';

function scene() {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  zookeeper.put(PATH, '', undefined);
  zookeeper.put(`${PATH}/_c_x-latch-0000000000`, 'one', 'a');
  return { clock, zookeeper, options: { clock, random: seededRandom(1) } };
}

/** For calls that are not bound to a session. */
function unbound(zookeeper: ScriptedZooKeeper): ZooKeeper {
  const own = { sessionId: 'a' };
  return new Proxy(zookeeper, {
    get(target, name) {
      if (name === 'read' || name === 'children')
        return (path: string, call: CallOptions) => target[name](path, { ...call, ...own });
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('watchers of an election', () => {
  it('do not wait without end where ZooKeeper is away', async () => {
    const { clock, zookeeper, options } = scene();
    zookeeper.fault = () => Promise.reject(fails('connection-loss', 'not-applied'));
    let outcome: unknown;
    participants(unbound(zookeeper), PATH, options).catch((error) => {
      outcome = error;
    });
    await clock.advance(60_000);
    expect(outcome).toMatchObject({ code: 'WAIT_TIMEOUT' });
  });

  it('are notified of a leader also where the session ends while that is being read', async () => {
    const { clock, zookeeper, options } = scene();
    let failures = 0;
    zookeeper.fault = async (operation) => {
      if (operation === 'read' && failures++ === 0) throw fails('session-expired', 'not-applied');
    };
    const leaders: (string | undefined)[] = [];
    const watch = watchLeader(unbound(zookeeper), PATH, (leader) => leaders.push(leader?.id), options);
    zookeeper.fireWatches();
    await clock.advance(10_000);
    watch.close();
    expect(leaders).toEqual(['one']);
  });
});
