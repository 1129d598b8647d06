import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { AskedMetrics } from './asked-metrics.js';

function setUp(answers = true) {
  const clock = new VirtualClock();
  const asked: number[] = [];
  const metrics: AskedMetrics = new AskedMetrics({
    clock,
    ask: (id, until) => {
      asked.push(until);
      if (answers) metrics.answered(id, 'text/x-metrics', `metrics ${id}`);
    },
  });
  return { clock, asked, metrics };
}

describe('the metrics of another thread', () => {
  it('are what it answers with', async () => {
    const { clock, metrics } = setUp();
    const text = metrics.text();
    await clock.advance(0);
    expect([await text, metrics.contentType]).toEqual(['metrics 1', 'text/x-metrics']);
    expect(clock.sleepers).toBe(0);
  });

  it('are asked for ten times a second at the most, however many want them, and never before who gets them wants them', async () => {
    const { clock, metrics, asked } = setUp();
    const first = metrics.text();
    await clock.advance(0);
    const others = Array.from({ length: 1_000 }, () => metrics.text());
    await clock.advance(99);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    expect([await first, new Set(await Promise.all(others))]).toEqual(['metrics 1', new Set(['metrics 2'])]);
  });

  it('are unavailable where it does not answer within two seconds, and again those that it answers with later', async () => {
    const { clock, metrics, asked } = setUp(false);
    const text = metrics.text();
    const refused = expect(text).rejects.toMatchObject({ error: 'unavailable' });
    await clock.advance(2_000);
    await refused;
    expect(asked).toEqual([2_000]);
    const again = metrics.text();
    await clock.advance(0);
    metrics.answered(1, 'text/plain', 'too late');
    metrics.answered(2, 'text/plain', 'in time');
    expect(await again).toBe('in time');
  });
});
