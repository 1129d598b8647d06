import type { LookupAddress, LookupOptions } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { newInstance } from '../instance/new-instance.js';
import type { InstancePicker } from './instance-target.js';
import { serviceLookup } from './node-requests.js';

/** A picker of instances at these addresses, in turns. */
function pickerOf(name: string, addresses: readonly string[]): InstancePicker {
  const instances = addresses.map((address) =>
    newInstance({ name, address, port: 80 }, { clock: new VirtualClock(), random: seededRandom(1) }),
  );
  let turn = 0;
  return {
    name,
    pick: (except) => {
      const rest = instances.filter((instance) => !except?.has(instance));
      turn += 1;
      return rest[(turn - 1) % rest.length];
    },
    noteError() {},
  };
}

function ask(
  lookup: LookupFunction,
  hostname: string,
  options: LookupOptions = {},
): Promise<string | LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(hostname, options, (error, address) => (error ? reject(error) : resolve(address)));
  });
}

const noSystem: LookupFunction = (hostname, _options, callback) =>
  callback(Object.assign(new Error(hostname), { code: 'ENOTFOUND' }), []);

it('gives one instance each time, as one address or as a list of one', async () => {
  const lookup = serviceLookup(pickerOf('orders', ['10.0.0.1', 'fe80::2']), { lookup: noSystem });
  expect(await ask(lookup, 'orders')).toBe('10.0.0.1');
  expect(await ask(lookup, 'Orders', { all: true })).toEqual([{ address: 'fe80::2', family: 6 }]);
  expect(await ask(lookup, 'orders', { all: true })).toEqual([{ address: '10.0.0.1', family: 4 }]);
});

it('gives an address of the requested family, if there is one', async () => {
  const lookup = serviceLookup(pickerOf('orders', ['10.0.0.1', 'fe80::2']), { lookup: noSystem });
  for (const family of [6, 'IPv6'] as const) expect(await ask(lookup, 'orders', { family })).toBe('fe80::2');
  for (const family of [4, 'IPv4'] as const) expect(await ask(lookup, 'orders', { family })).toBe('10.0.0.1');
  await expect(
    ask(serviceLookup(pickerOf('orders', ['10.0.0.1'])), 'orders', { family: 6 }),
  ).rejects.toMatchObject({
    code: 'NO_INSTANCE',
  });
});

it('resolves an instance whose address is a host name, as requested', async () => {
  const asked: unknown[] = [];
  const system: LookupFunction = (hostname, options, callback) => {
    asked.push([hostname, options]);
    callback(null, '10.0.0.9', 4);
  };
  expect(
    await ask(serviceLookup(pickerOf('orders', ['host-1.internal']), { lookup: system }), 'orders', {
      family: 4,
    }),
  ).toBe('10.0.0.9');
  expect(asked).toEqual([['host-1.internal', { family: 4 }]]);
});

it('knows several services by their host names, and leaves other names to the system', async () => {
  const providers = new Map([
    ['orders.internal', pickerOf('shop orders', ['10.0.0.1'])],
    ['Stock', pickerOf('stock', ['10.0.0.2'])],
  ]);
  const lookup = serviceLookup(providers, { lookup: noSystem });
  expect([await ask(lookup, 'orders.internal'), await ask(lookup, 'stock')]).toEqual([
    '10.0.0.1',
    '10.0.0.2',
  ]);
  await expect(ask(lookup, 'orders')).rejects.toThrow('orders');
});

it.each([
  ['an instance', ['10.0.0.1'], null],
  ['none', [], expect.objectContaining({ code: 'NO_INSTANCE' })],
])('answers only after it has returned, where there is %s', async (_what, addresses, error) => {
  const answers: unknown[] = [];
  serviceLookup(pickerOf('orders', addresses))('orders', {}, (failure) => answers.push(failure));
  expect(answers).toEqual([]);
  await settled();
  expect(answers).toEqual([error]);
});

it('refuses a service whose name cannot be a host name', () => {
  expect(() => serviceLookup(pickerOf('shop orders', []))).toThrow(ConfigError);
});
