import { expect, it } from 'vitest';
import type { ServiceEntry } from '../../../node/wire/entries-wire.js';
import { changesSince } from './entry-feed.js';

const entry = (id: string): ServiceEntry => {
  return {
    service: 'orders',
    id,
    instance: null,
    text: null,
    sessionId: null,
    changedAt: null,
    node: null,
    problem: null,
  };
};

it('a client gets each entry once until it changes, in messages of 200 at most, and the paths that are gone', () => {
  const sent = new Map<string, ServiceEntry>();
  const entries = new Map(Array.from({ length: 450 }, (_, id) => [`/${id}`, entry(`${id}`)]));
  expect([...changesSince(sent, entries)].map(({ set, gone }) => [set.length, gone.length])).toEqual([
    [200, 0],
    [200, 0],
    [50, 0],
  ]);
  expect([...changesSince(sent, entries)]).toEqual([]);
  entries.delete('/3');
  entries.set('/4', entry('4'));
  expect([...changesSince(sent, entries)]).toEqual([
    { set: [], gone: ['/3'] },
    { set: [['/4', entry('4')]], gone: [] },
  ]);
});
