import { describe, expect, it } from 'vitest';
import { unknownVariables } from './settings.js';
import { environmentName, SETTINGS } from './settings-table.js';

describe('variables with the prefix of settings', () => {
  it.each([
    ['NODELEASE_STOR', 'NODELEASE_STORE'],
    ['NODELEASE_STOER', 'NODELEASE_STORE'],
    ['NODELEASE_NODE', 'NODELEASE_NODES'],
    ['NODELEASE_ZOOKEPER_AUTH', 'NODELEASE_ZOOKEEPER_AUTH'],
    ['NODELEASE_DURATION_MS', 'NODELEASE_DURATION'],
  ])('are named where they are none, with the nearest one: %s', (name, nearest) => {
    expect(unknownVariables({ [name]: 'x', PATH: '/bin' })).toEqual([
      `${name} is no setting, and has no effect: the nearest is ${nearest}`,
    ]);
  });

  it('are named where an env file of Windows has a byte order mark before the first one', () => {
    expect(unknownVariables({ '\ufeffNODELEASE_STORE': 'file:x' })).toEqual([
      'NODELEASE_STORE has a byte order mark (U+FEFF) before its name, and no effect',
    ]);
  });

  it('are not named where they are some, of whatever command', () => {
    const names = [...SETTINGS.map(({ name }) => environmentName(name)), 'NODELEASE_URL'];
    expect(
      unknownVariables({ ...Object.fromEntries(names.map((name) => [name, 'x'])), NODE_ID: '3' }),
    ).toEqual([]);
  });

  it('are named without a nearest one where none is near, and not at all where Kubernetes sets them for a service', () => {
    expect(unknownVariables({ NODELEASE_GREETING: 'hello' })).toEqual([
      'NODELEASE_GREETING is no setting, and has no effect',
    ]);
    const service = [
      'SERVICE_HOST',
      'SERVICE_PORT',
      'SERVICE_PORT_HTTP',
      'PORT',
      'PORT_7070_TCP',
      'PORT_7070_TCP_PROTO',
      'PORT_7070_TCP_PORT',
      'PORT_7070_TCP_ADDR',
    ];
    for (const prefix of ['NODELEASE', 'NODELEASE_CONSOLE'])
      expect(
        unknownVariables(
          Object.fromEntries(service.map((name) => [`${prefix}_${name}`, 'tcp://10.96.0.10:7070'])),
        ),
      ).toEqual([]);
  });
});
