import { describe, expect, it } from 'vitest';
import { deploymentWindow } from '../lib/deployment-window.js';

describe('a deployment', () => {
  it('never has more tasks running than there are node ids, and always gets on', () => {
    for (let desired = 1; desired <= 220; desired++) {
      for (const nodes of [
        desired,
        desired + 1,
        desired + 2,
        desired + 7,
        Math.ceil(desired * 1.5),
        desired * 2,
        desired * 3,
      ]) {
        const { minHealthyPercent, maxHealthyPercent, surge } = deploymentWindow(desired, nodes);
        const most = Math.floor((desired * maxHealthyPercent) / 100);
        const least = Math.ceil((desired * minHealthyPercent) / 100);
        expect(most, `${desired} tasks, ${nodes} ids`).toBeLessThanOrEqual(nodes);
        expect(most > desired || least < desired, `${desired} tasks, ${nodes} ids`).toBe(true);
        expect(surge).toBe(most - desired);
        expect(maxHealthyPercent).toBeLessThanOrEqual(200);
      }
    }
  });

  it.each([
    [3, 6, { minHealthyPercent: 100, maxHealthyPercent: 200, surge: 3 }],
    [3, 4, { minHealthyPercent: 100, maxHealthyPercent: 134, surge: 1 }],
    [3, 3, { minHealthyPercent: 66, maxHealthyPercent: 100, surge: 0 }],
    [1, 1, { minHealthyPercent: 0, maxHealthyPercent: 100, surge: 0 }],
    [100, 1_000, { minHealthyPercent: 100, maxHealthyPercent: 200, surge: 100 }],
  ])(
    'of %i tasks on %i ids starts new tasks first exactly where there are ids for them',
    (desired, nodes, window) => {
      expect(deploymentWindow(desired, nodes)).toEqual(window);
    },
  );

  it('with more tasks than node ids is refused', () => {
    expect(() => deploymentWindow(4, 3)).toThrow(
      'desiredCount: expected at most 3, the number of node ids (the other tasks would wait for one for ever), got 4',
    );
  });

  it.each([0, -1, 1.5, 65_529, Number.NaN])('on %d node ids is refused', (nodes) => {
    expect(() => deploymentWindow(1, nodes)).toThrow('nodes: expected a whole number from 1 to 65528');
  });

  it.each([0, -1, 1.5])('of %d tasks is refused', (desired) => {
    expect(() => deploymentWindow(desired, 3)).toThrow('desiredCount: expected a whole number from 1');
  });
});
