import { expect, it } from 'vitest';
import { ConfigError } from '../../../core/base/errors.js';
import { checkRoutingOptions, type ServiceHosts } from './routing-options.js';

const originMatcher = (name: string, hosts: ServiceHosts | undefined) =>
  checkRoutingOptions(name, { hosts }).isMeant;

it('takes the URLs whose host is the name of the service, in any case and with any port', () => {
  const isMeant = originMatcher('Order_Service', undefined);
  expect(
    ['http://order_service', 'https://ORDER_SERVICE:8443', new URL('http://order_service/x'), undefined].map(
      isMeant,
    ),
  ).toEqual([true, true, true, true]);
  expect(['http://orders', 'http://order_service.example', 'nonsense', ''].map(isMeant)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

it('uses the given hosts, and not the name then', () => {
  const isMeant = originMatcher('orders', ['shop.example', 'bücher.example']);
  expect(['http://shop.example', 'http://xn--bcher-kva.example', 'http://orders'].map(isMeant)).toEqual([
    true,
    true,
    false,
  ]);
  expect(originMatcher('orders', 'any')('http://elsewhere')).toBe(true);
});

it.each(['a/b', 'a b', 'a:80', 'user@a', 'a?b', ''])(
  'says that a service named %j needs its hosts as an option',
  (name) => {
    expect(() => originMatcher(name, undefined)).toThrow(ConfigError);
    expect(() => originMatcher(name, ['orders'])).not.toThrow();
    expect(() => originMatcher('orders', [name])).toThrow(ConfigError);
  },
);
