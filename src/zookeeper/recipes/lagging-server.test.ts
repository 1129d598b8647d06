import { expect, it } from 'vitest';
import { LaggingServer } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { barrier } from './barrier.js';
import { counter } from './counter.js';
import { queue } from './queue/queue.js';
import { transaction } from './transaction.js';

const PATH = '/recipe';

/** Another client has written that, at a server that is ahead. */
function behind(znodes: Readonly<Record<string, string | Buffer>>) {
  const clock = new VirtualClock();
  const zookeeper = new LaggingServer(clock);
  for (const [name, data] of Object.entries(znodes)) zookeeper.put(PATH + name, data, undefined);
  const done = <T>(work: Promise<T>) => inVirtualTime(clock, work);
  return { clock, zookeeper, options: { clock, random: seededRandom(1) }, done };
}

it('a barrier holds a task whose server does not show yet that it is set', async () => {
  const { clock, zookeeper, options } = behind({ '': '' });
  let isPast = false;
  const passing = barrier(zookeeper, PATH, options)
    .wait()
    .then(() => {
      isPast = true;
    });
  await clock.advance(60_000);
  expect(isPast).toBe(false);
  zookeeper.znodes.delete(PATH);
  zookeeper.fireWatches();
  await clock.advance(0);
  await passing;
});

it('a barrier holds a task whose next session is at such a server', async () => {
  const { clock, zookeeper, options, done } = behind({ '': '' });
  let isPast = false;
  const passing = barrier(zookeeper, PATH, options)
    .wait()
    .then(() => {
      isPast = true;
    });
  await clock.advance(1_000);
  zookeeper.nextSession('b');
  zookeeper.fireWatches();
  await clock.advance(60_000);
  expect(isPast).toBe(false);
  zookeeper.znodes.delete(PATH);
  zookeeper.fireWatches();
  await done(passing);
});

it('a counter is compared with what it is, and not with what a server shows that lags behind', async () => {
  const { zookeeper, options, done } = behind({ '': Buffer.from('0000000000000005', 'hex') });
  const orders = counter(zookeeper, PATH, options);
  expect(await done(orders.compareAndSet(5, 6))).toBe(true);
  expect(await done(orders.compareAndSet(5, 7))).toBe(false);
  expect(await done(orders.get())).toBe(6n);
});

it('a taker that does not wait takes an item that its server does not show yet', async () => {
  const { zookeeper, options, done } = behind({ '': '', '/qn-0000000000': 'job' });
  const jobs = queue(zookeeper, PATH, { ...options, format: 'simple' });
  expect(String(await done(jobs.take({ timeoutMs: 0 })))).toBe('job');
  await expect(done(jobs.take({ timeoutMs: 0 }))).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' });
});

it('a transaction that a server does not show yet is removed all the same', async () => {
  const { zookeeper, options, done } = behind({ '': '', '/sites': 'a', '/decision': 'commit' });
  await done(transaction(zookeeper, PATH, options).forget());
  expect([...zookeeper.znodes.keys()]).toEqual([]);
});

it('a site whose next session is at such a server waits for the outcome', async () => {
  const { clock, zookeeper, options, done } = behind({
    '': '',
    '/sites': 'a',
    '/coordinator-x': '',
    '/vote-a': 'commit',
  });
  await zookeeper.multi([{ type: 'check', path: PATH }]);
  const joining = transaction(zookeeper, PATH, options).join({ site: 'a' }, async () => 'commit');
  await clock.advance(1_000);
  zookeeper.nextSession('b');
  zookeeper.fireWatches();
  await clock.advance(1_000);
  zookeeper.put(`${PATH}/decision`, 'commit', undefined);
  zookeeper.fireWatches();
  expect(await done(joining)).toBe('commit');
});
