import { describe, expect, it } from 'vitest';
import { inRounds } from './retry.js';
import { ZooKeeperError, type ZooKeeperFault } from './zookeeper-error.js';

const failing = (fault: ZooKeeperFault) => {
  const seen = { steps: 0 };
  const step = async () => {
    seen.steps += 1;
    throw new ZooKeeperError(fault, fault, 'not-applied');
  };
  return { seen, step };
};

describe('a step against the writes of others', () => {
  it.each(['node-exists', 'no-node', 'bad-version'] as const)(
    'is repeated after %s, and reports contention after eight rounds',
    async (fault) => {
      const { seen, step } = failing(fault);
      await expect(inRounds('/a', step)).rejects.toMatchObject({ fault: 'contended', path: '/a' });
      expect(seen.steps).toBe(8);
    },
  );

  it.each(['not-empty', 'no-auth', 'connection-loss'] as const)(
    'fails at once with %s, which a repetition does not change',
    async (fault) => {
      const { seen, step } = failing(fault);
      await expect(inRounds('/a', step)).rejects.toMatchObject({ fault });
      expect(seen.steps).toBe(1);
    },
  );
});
