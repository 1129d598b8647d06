import { describe, expect, it } from 'vitest';
import { fails } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { erase, inRounds } from './retry.js';
import { ZooKeeperError, type ZooKeeperFault } from './zookeeper.js';

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

describe('an own znode that is to go', () => {
  it.each([
    ['connection-loss', 'not-applied', 2],
    ['timeout', 'not-applied', 2],
    ['refused', 'unknown', 2],
    ['refused', 'not-applied', 1],
    ['session-expired', 'unknown', 1],
    ['closed', 'unknown', 1],
  ] as const)(
    'is deleted until that is certain: %s, %s, takes %i calls',
    async (fault, outcome, expected) => {
      const clock = new VirtualClock();
      const paths: string[] = [];
      const remove = async (path: string) => {
        paths.push(path);
        if (paths.length === 1) throw fails(fault, outcome);
        return true;
      };
      const erasing = erase({ clock, random: seededRandom(1) }, { remove }, '/locks/own');
      await clock.advance(100);
      await erasing;
      expect(paths).toEqual(Array.from({ length: expected }, () => '/locks/own'));
    },
  );
});
