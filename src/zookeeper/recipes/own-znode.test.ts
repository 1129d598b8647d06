import { describe, expect, it } from 'vitest';
import { fails } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { erase } from './own-znode.js';

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
