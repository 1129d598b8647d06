import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { Listeners } from '../../../core/base/listeners.js';
import { entryEvents } from './entry-feed.js';

it('a client gets each entry once until it changes, in messages of 200 at most, and the paths that are gone', async () => {
  const clock = new VirtualClock();
  const listeners = new Listeners<void>();
  const entries = new Map(Array.from({ length: 450 }, (_, id) => [`/${id}`, { version: 1 }]));
  const tree = {
    entries,
    status: { state: 'ok', problem: null, isWhole: true, isPartial: false },
    follow: (listener: () => void) => listeners.add(listener),
  } as const;
  const hello = { zookeeper: 'zk', path: '/services', writes: false };
  const gone = new AbortController();
  let text = '';
  const reading = (async () => {
    for await (const chunk of entryEvents({ clock, tree, hello }, gone.signal))
      text += Buffer.from(chunk).toString();
  })().catch(() => undefined);
  const sent = async () => {
    listeners.notify();
    await clock.advance(1_000);
    const messages = [...text.matchAll(/event: entries\ndata: (.*)\n\n/g)];
    text = '';
    return messages.map(([, json = '']) => JSON.parse(json) as { set: unknown[]; gone: unknown[] });
  };
  expect((await sent()).map((changes) => [changes.set.length, changes.gone.length])).toEqual([
    [200, 0],
    [200, 0],
    [50, 0],
  ]);
  expect(await sent()).toEqual([]);
  entries.delete('/3');
  entries.set('/4', { version: 2 });
  expect(await sent()).toEqual([
    { set: [], gone: ['/3'] },
    { set: [['/4', { version: 2 }]], gone: [] },
  ]);
  gone.abort();
  await reading;
});
