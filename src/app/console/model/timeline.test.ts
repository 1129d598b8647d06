import { describe, expect, it } from 'vitest';
import type { Tenure } from '../../../node/wire/cluster-snapshot.js';
import { laneParts, sumParts } from './timeline.js';

const tenure = (acquiredAt: number, endedAt: number | null, end: Tenure['end'] = null): Tenure => {
  return { version: acquiredAt, taskId: `task-${acquiredAt}`, acquiredAt, endedAt, end };
};

describe('a lane', () => {
  it('has its tenures and the gaps between them, and claims nothing of the time before', () => {
    const lane = [
      tenure(100, 200, 'expired'),
      tenure(250, 300, 'released'),
      tenure(300, 320),
      tenure(320, null),
    ];
    expect(laneParts(lane, 500).map(({ kind, from, to }) => [kind, from, to])).toEqual([
      ['no known tenure', 0, 100],
      ['expired', 100, 200],
      ['free', 200, 250],
      ['released', 250, 300],
      ['end not seen', 300, 320],
      ['held', 320, 500],
    ]);
    expect(laneParts([], 500).map(({ kind }) => kind)).toEqual(['no known tenure']);
    expect(laneParts([tenure(100, 200, 'retired')], 500).at(-1)?.kind).toBe('free');
  });

  it('distinguishes a free id from one whose earlier tenures are forgotten', () => {
    const firstKind = (lane: Parameters<typeof laneParts>[0], knownSince: number | null) =>
      laneParts(lane, 500, knownSince)[0]?.kind;
    expect([0, 100, null].map((since) => firstKind([tenure(100, null)], since))).toEqual([
      'free',
      'no known tenure',
      'no known tenure',
    ]);
    expect([0, null].map((since) => firstKind([], since))).toEqual(['free', 'no known tenure']);
  });

  it('marks a tenure that was taken over, not one after a release', () => {
    const marked = (end: Tenure['end']) =>
      laneParts([tenure(100, 200, end), tenure(250, null)], 500).filter(({ isTakeOver }) => isTakeOver);
    expect(marked('expired').map(({ from }) => from)).toEqual([250]);
    expect(marked('released')).toEqual([]);
  });

  it('says who, which version, from when, until when, and how it ended', () => {
    const at = new Date(2026, 10, 26, 2, 14).getTime();
    const lane = [tenure(at - 60_000, at, 'expired'), tenure(at + 1_000, at + 5_000, 'evicted')];
    const texts = laneParts(lane, at + 9_000).map(({ text }) => text());
    expect(texts).toEqual([
      'until 2026-11-26 02:13:00, no known tenure',
      `task-${at - 60_000}, version ${at - 60_000}, from 2026-11-26 02:13:00, until 2026-11-26 02:14:00, expired`,
      'from 2026-11-26 02:14:00, until 2026-11-26 02:14:01, free',
      `task-${at + 1_000}, version ${at + 1_000}, taken over, from 2026-11-26 02:14:01, until 2026-11-26 02:14:05, evicted`,
      'from 2026-11-26 02:14:05, free',
    ]);
  });
});

describe('sixty parts of a window', () => {
  const MINUTE = 60_000;
  const begin = 60 * MINUTE;
  const window = [begin, 2 * begin] as const;
  const later = (from: number, to: number | null, end: Tenure['end'] = null) =>
    tenure(begin + from, to === null ? null : begin + to, end);

  it('show how much of the ids was held', () => {
    const lanes = [[later(0, 1.5 * MINUTE, 'released')], [later(MINUTE, null)], [], []];
    const parts = sumParts(lanes, 'held', window, begin + 3 * MINUTE);
    expect(parts.slice(0, 4).map(({ share }) => share)).toEqual([0.25, 0.375, 0.25, 0]);
    expect(parts.map(({ text }) => text()).slice(1, 2)).toEqual(['38 % known to be held']);
  });

  it('show the take-overs a minute, each once', () => {
    const lanes = [
      [later(0, 1_000, 'expired'), later(MINUTE, 30 * MINUTE, 'expired'), later(31 * MINUTE, null)],
      [later(-9_000, -5_000, 'expired'), later(-4_000, MINUTE, 'expired'), later(1.5 * MINUTE, null)],
    ];
    const parts = sumParts(lanes, 'taken over', window, 2 * begin);
    const shown = parts.flatMap(({ share, from, text }) =>
      share > 0 ? [[(from - begin) / MINUTE, share, text()]] : [],
    );
    expect(shown).toEqual([
      [1, 1, '2.0 a minute'],
      [31, 0.5, '1.0 a minute'],
    ]);
  });
});
