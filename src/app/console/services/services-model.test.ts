import { describe, expect, it } from 'vitest';
import { ENABLED, serviceEntry as entry } from '../../../../test/support/service-entries.js';
import type { InstanceFacts } from '../../../node/wire/entries-wire.js';
import { addressText, countText, leaseText } from './services-model.js';

describe('an instance in words', () => {
  it('has its address and ports', () => {
    expect(addressText(entry('a', { instance: { ...ENABLED, address: 'fd00::1', sslPort: 443 } }))).toBe(
      '[fd00::1]:80 TLS :443',
    );
    expect(addressText(entry('a', { instance: { ...ENABLED, address: null, port: null } }))).toBe('');
    expect(addressText(entry('a', { instance: null }))).toBe('');
  });

  it('names the lease, and who says so', () => {
    const node = { nodeId: 7, version: 2, taskId: 't' };
    const claiming = (version: number | null): InstanceFacts => ({
      ...ENABLED,
      claim: { nodeId: 7, version },
    });
    expect(leaseText(entry('a'))).toBe('');
    expect(leaseText(entry('a', { node }))).toBe('node id 7, version 2, task t');
    expect(leaseText(entry('a', { node, instance: claiming(2) }))).toBe('node id 7, version 2, task t');
    expect(leaseText(entry('a', { node, instance: claiming(null) }))).toBe('node id 7, version 2, task t');
    expect(leaseText(entry('a', { instance: claiming(2) }))).toBe(
      'node id 7, version 2, says its payload: the discovery tree has no such node',
    );
    expect(leaseText(entry('a', { instance: claiming(null) }))).toBe(
      'node id 7, says its payload: the discovery tree has no such node',
    );
    expect(leaseText(entry('a', { node, instance: claiming(1) }))).toBe(
      'node id 7, version 1, says its payload: the discovery tree has version 2',
    );
  });

  it('is counted by its state', () => {
    expect(countText([entry('a'), entry('b'), entry('c', { instance: null })])).toBe('2 enabled, 1 damaged');
    const folder = entry('providers', { instance: null, isDubboFolder: true });
    expect(countText([entry('a'), folder])).toBe('1 enabled, 1 of a Dubbo interface');
    expect(countText([])).toBe('no instances');
  });
});
