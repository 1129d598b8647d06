import { describe, expect, it } from 'vitest';
import type { ClusterHistory, Tenure } from '../../../node/wire/cluster-snapshot.js';
import type { NodeReport } from '../../../node/wire/status-report.js';
import type { SeenNode } from './cluster-model.js';
import { axisText, laneParts, spanEnd, spanSince, sumParts, TenureLog } from './timeline.js';

const node = (id: number, version: number): SeenNode => {
  const nothing = { ageMs: null, expiresInMs: null, timestamp: null, knownNodes: {}, idWidth: null };
  const shown: NodeReport = { id, state: 'held', version, taskId: 'a', problem: null, ...nothing };
  return { node: shown, receivedAt: 0, shown };
};
const tenure = (
  version: number,
  acquiredAt: number | null,
  endedAt: number | null,
  end: Tenure['end'] = null,
): Tenure => ({ version, taskId: `task-${version}`, acquiredAt, endedAt, end });

/** A log, what it has asked for, and what it is answered. */
function scene(history: (id: number) => readonly Tenure[] = () => []) {
  const asked: (readonly number[])[] = [];
  const log = new TenureLog();
  const answer = { history };
  const see = (nodes: readonly SeenNode[], at: number) =>
    log.see(nodes, at, async (ids): Promise<ClusterHistory> => {
      asked.push(ids);
      return { nodes: ids.map((id) => ({ id, tenures: answer.history(id), knownSince: null })) };
    });
  return { log, see, asked, answer };
}

describe('the history of a lease object', () => {
  it('is read once, and again when the lease changes', async () => {
    const { see, asked } = scene();
    const nodes = [node(0, 1), node(1, 1)];
    await see(nodes, 1_000);
    await see(nodes, 2_000);
    await see([node(0, 2), ...nodes.slice(1)], 3_000);
    expect(asked).toEqual([[0, 1], [0]]);
  });

  it('is asked for again after a failure, and for a thousand ids at most in one request', async () => {
    const nodes = Array.from({ length: 1_500 }, (_, id) => node(id, 1));
    const { log, see, asked } = scene();
    await log.see(nodes, 1_000, () => Promise.reject(new Error('no server')));
    await log.see(nodes, 1_050, async () => JSON.parse('{"error":"unavailable"}') as ClusterHistory);
    for (let at = 1_100; at < 1_500; at += 100) await see(nodes, at);
    expect(asked.map(({ length }) => length)).toEqual([1_000, 500]);
  });

  it('is not asked for while an answer is awaited', async () => {
    const { log, see, asked } = scene();
    let resolve = (_: ClusterHistory): void => undefined;
    const first = log.see([node(0, 1)], 1_000, () => new Promise((answer) => (resolve = answer)));
    await see([node(0, 2)], 2_000);
    expect(asked).toEqual([]);
    resolve({ nodes: [] });
    await first;
    await see([node(0, 2)], 3_000);
    expect(asked).toEqual([[0]]);
  });

  it('is added to what is known, which it corrects', async () => {
    const { log, see, answer } = scene(() => [tenure(2, 7_000, null), tenure(1, 1_000, 3_000, 'expired')]);
    await see([node(0, 2)], 8_000);
    answer.history = () => [tenure(3, 11_500, null), tenure(2, 7_000, 11_000, 'evicted')];
    await see([node(0, 3)], 12_000);
    expect(log.lanes.get(0)).toEqual([
      tenure(1, 1_000, 3_000, 'expired'),
      tenure(2, 7_000, 11_000, 'evicted'),
      tenure(3, 11_500, null),
    ]);
  });

  it('without times has those at which the page saw the tenures', async () => {
    const { log, see, answer } = scene(() => [tenure(5, null, null)]);
    await see([node(0, 5)], 1_000);
    await see([node(0, 5)], 2_000);
    answer.history = () => [tenure(6, null, null)];
    await see([node(0, 6)], 3_000);
    expect(log.lanes.get(0)).toEqual([tenure(5, 1_000, 3_000), tenure(6, 3_000, null)]);
  });

  it('is all that is known after a time without reports: nothing is claimed of that time', async () => {
    const { log, see, answer } = scene(() => [tenure(5, null, null)]);
    await see([node(0, 5)], 1_000);
    answer.history = () => [tenure(6, null, null)];
    await see([node(0, 6)], 60_000);
    expect(log.lanes.get(0)).toEqual([tenure(6, 60_000, null)]);
  });
});

it('a span around a moment goes on with the time if it reaches the present, else it stays in the past', () => {
  expect([89, 90, 91].map((at) => spanEnd(at, 20, 100))).toEqual([99, Infinity, Infinity]);
});

it('keeps the last hundred tenures of an id', async () => {
  const { log, see, answer } = scene();
  for (let version = 8; version <= 200; version += 8) {
    answer.history = () => Array.from({ length: 8 }, (_, index) => tenure(version - index, version, version));
    await see([node(0, version)], version);
  }
  const lane = log.lanes.get(0);
  expect([lane?.length, lane?.[0]?.version, lane?.at(-1)?.version]).toEqual([100, 101, 200]);
});

const span = (acquiredAt: number, endedAt: number | null, end: Tenure['end'] = null): Tenure => {
  return { version: acquiredAt, taskId: `task-${acquiredAt}`, acquiredAt, endedAt, end };
};

describe('a lane', () => {
  it('has its tenures and the gaps between them, and claims nothing of the time before', () => {
    const lane = [span(100, 200, 'expired'), span(250, 300, 'released'), span(300, 320), span(320, null)];
    expect(laneParts(lane, 500).map(({ kind, from, to }) => [kind, from, to])).toEqual([
      ['no known tenure', 0, 100],
      ['expired', 100, 200],
      ['free', 200, 250],
      ['released', 250, 300],
      ['end not seen', 300, 320],
      ['held', 320, 500],
    ]);
    expect(laneParts([], 500).map(({ kind }) => kind)).toEqual(['no known tenure']);
    expect(laneParts([span(100, 200, 'retired')], 500).at(-1)?.kind).toBe('free');
  });

  it('distinguishes a free id from one whose earlier tenures are forgotten', () => {
    const firstKind = (lane: Parameters<typeof laneParts>[0], knownSince: number | null) =>
      laneParts(lane, 500, knownSince)[0]?.kind;
    expect([0, 100, null].map((since) => firstKind([span(100, null)], since))).toEqual([
      'free',
      'no known tenure',
      'no known tenure',
    ]);
    expect([0, null].map((since) => firstKind([], since))).toEqual(['free', 'no known tenure']);
  });

  it('marks a tenure that was taken over, not one after a release', () => {
    const marked = (end: Tenure['end']) =>
      laneParts([span(100, 200, end), span(250, null)], 500).filter(({ isTakeOver }) => isTakeOver);
    expect(marked('expired').map(({ from }) => from)).toEqual([250]);
    expect(marked('released')).toEqual([]);
  });

  it('says who, which version, from when, until when, and how it ended', () => {
    const at = new Date(2026, 10, 26, 2, 14).getTime();
    const lane = [span(at - 60_000, at, 'expired'), span(at + 1_000, at + 5_000, 'evicted')];
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
    span(begin + from, to === null ? null : begin + to, end);

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

describe('the range', () => {
  it('has the first known tenure, grows with the time since then, and stays when tenures are forgotten', async () => {
    const at = 1_000_000_000;
    const { log, see } = scene(() => [tenure(1, at - 200_000, null)]);
    const minutes = (now: number) => spanSince(log.first, now) / 60_000;
    expect(minutes(at)).toBe(5);
    await see([node(0, 1)], at);
    expect([at, at + 100_000, at + 101_000, at + 3_000_000].map(minutes)).toEqual([5, 5, 15, 60]);
    expect(minutes(at + 40 * 86_400_000)).toBe(7 * 24 * 60);
    await see([], at + 60_000);
    expect(minutes(at + 60_000)).toBe(5);
  });

  it('has a date at its first moment, and where the day changes', () => {
    const moments = [-7, -1, 5].map((hours) => new Date(2026, 10, 29, hours).getTime());
    expect(moments.map((at, index) => axisText(at, moments[index - 1]))).toEqual([
      ['17:00:00', '2026-11-28'],
      ['23:00:00', ''],
      ['05:00:00', '2026-11-29'],
    ]);
  });
});
