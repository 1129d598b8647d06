import { expect, it } from 'vitest';
import { AnySession, fails } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { openConfiguration } from './configuration.js';

it('begins to watch a large configuration in many turns of the event loop, so that a lease is renewed meanwhile', async () => {
  const KEYS = 600;
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  zookeeper.put('/config', '', undefined);
  zookeeper.put('/config/shop', '', undefined);
  for (let i = 0; i < KEYS; i += 1) zookeeper.put(`/config/shop/key-${i}`, `${i}`, undefined);
  const configuration = await inVirtualTime(
    clock,
    openConfiguration(zookeeper, { app: 'shop', clock, random: seededRandom(1) }),
  );
  expect(configuration.values.size).toBe(KEYS);
  // Time does not move, nor does what waits for the next turn.
  await settled();
  expect(zookeeper.watches.size).toBeLessThan(KEYS / 4);
  await clock.advance(0);
  // Of each key its data, and what is made below it.
  expect(zookeeper.watches.size).toBeGreaterThan(2 * KEYS);
  await configuration.close();
  expect(zookeeper.watches.size).toBe(0);
});

it('leaves no timer behind where its client is closed while it cannot be read', async () => {
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  zookeeper.put('/config', '', undefined);
  const options = { app: 'shop', clock, random: seededRandom(1) };
  await inVirtualTime(clock, openConfiguration(zookeeper, options));
  zookeeper.fault = () => Promise.reject(fails('no-auth', 'not-applied'));
  zookeeper.fireWatches();
  await clock.advance(0);
  expect(clock.sleepers).toBe(1);
  zookeeper.fault = () => Promise.reject(fails('closed', 'not-applied'));
  await clock.advance(10_000);
  expect(clock.sleepers).toBe(0);
});
