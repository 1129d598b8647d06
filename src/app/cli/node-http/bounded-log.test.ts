import { expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { BoundedLog, type LogLine } from './bounded-log.js';

it('sends at most twenty lines in a second, and says later how many there were more', async () => {
  const clock = new VirtualClock();
  const lines: LogLine[] = [];
  const log = new BoundedLog(clock, (line) => lines.push(line));
  for (let i = 0; i < 100; i += 1) log.write('error', `line ${i}`, 'a stack');
  expect(lines).toHaveLength(20);
  expect(lines[19]).toEqual({ type: 'log', level: 'error', message: 'line 19', stack: 'a stack' });
  await clock.advance(1_000);
  log.write('warn', 'one more');
  log.write('warn', 'another');
  expect(lines.slice(20).map(({ message }) => message)).toEqual([
    'one more (before that, 80 lines were left out)',
    'another',
  ]);
});
