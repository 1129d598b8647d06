import { expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { NameResolver } from '../../zookeeper/client/connection/name-resolver.js';
import { hostNames } from './host-names.js';

it('keeps the addresses of a host name for 30 seconds, and for one second that there are none', async () => {
  const clock = new VirtualClock();
  const lookups: string[] = [];
  const names = hostNames(
    clock,
    new NameResolver(async (host) => {
      lookups.push(host);
      if (host === 'gone.example.com') throw new Error('no such host');
      return ['192.0.2.1', 'fe80::1%eth0'];
    }),
  );
  const addresses = async (host: string) => {
    const first = names.addressesOf(host);
    if (first.kind === 'pending') await first.again;
    return names.addressesOf(host);
  };
  const found = { kind: 'known', value: ['192.0.2.1'] };
  const counted = (host: string) => lookups.filter((each) => each === host).length;
  expect(await addresses('db.example.com')).toEqual(found);
  expect(await addresses('gone.example.com')).toEqual({ kind: 'absent' });
  await clock.advance(900);
  await addresses('gone.example.com');
  expect(counted('gone.example.com')).toBe(1);
  await clock.advance(200);
  await addresses('gone.example.com');
  expect(counted('gone.example.com')).toBe(2);
  await clock.advance(28_000);
  expect(await addresses('db.example.com')).toEqual(found);
  expect(counted('db.example.com')).toBe(1);
  await clock.advance(2_000);
  expect(await addresses('db.example.com')).toEqual(found);
  expect(counted('db.example.com')).toBe(2);
  names.close();
});

it('answers a question at the end at once: closed names are not looked up again', async () => {
  const clock = new VirtualClock();
  const names = hostNames(clock, new NameResolver(() => new Promise(() => undefined)));
  const lookup = names.addressesOf('db.example.com');
  names.close();
  if (lookup.kind === 'pending') await lookup.again;
  await clock.advance(0);
  expect(names.addressesOf('db.example.com')).toEqual({ kind: 'absent' });
});
