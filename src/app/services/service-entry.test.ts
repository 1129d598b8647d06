import { expect, it } from 'vitest';
import type { ZnodeStat } from '../../zookeeper/client/zookeeper.js';
import { readEntry } from './service-entry.js';

it('an instance of Dubbo is shown as what it is, and a folder of Dubbo as nothing wrong', () => {
  const stat = { owner: '1', childCount: 0, modifiedAt: 1_000 } as ZnodeStat;
  const payload = {
    '@class': 'org.apache.dubbo.registry.zookeeper.ZookeeperInstance',
    metadata: {
      'dubbo.endpoints': '[{"port":20880,"protocol":"dubbo"}]',
      'dubbo.metadata.revision': '6c3b99',
    },
  };
  const json = JSON.stringify({ name: 'shop', id: 'a:20880', address: 'a', port: 20880, payload });
  expect(readEntry('shop', 'a:20880', { data: Buffer.from(json), stat })).toMatchObject({
    instance: { state: 'enabled', dubbo: 'dubbo:20880 · revision 6c3b' },
    text: JSON.stringify(payload),
    problem: null,
  });
  expect(readEntry('shop', 'a', { data: Buffer.from('{}'), stat }).instance).not.toHaveProperty('dubbo');
  const data = Buffer.from('10.0.0.7');
  expect(readEntry('shop', 'providers', { data, stat })).toEqual({
    sessionId: '1',
    changedAt: '1970-01-01T00:00:01.000Z',
    text: '10.0.0.7',
    isDubboFolder: true,
  });
  expect(readEntry('shop', 'other', { data, stat })).toMatchObject({ problem: 'is not JSON' });
});
