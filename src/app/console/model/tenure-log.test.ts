import { describe, expect, it } from 'vitest';
import type { ClusterHistory, Tenure } from '../../../node/wire/cluster-snapshot.js';
import type { NodeReport } from '../../../node/wire/status-report.js';
import type { SeenNode } from './cluster-model.js';
import { TenureLog } from './tenure-log.js';

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

it('keeps the last hundred tenures of an id', async () => {
  const { log, see, answer } = scene();
  for (let version = 8; version <= 200; version += 8) {
    answer.history = () => Array.from({ length: 8 }, (_, index) => tenure(version - index, version, version));
    await see([node(0, version)], version);
  }
  const lane = log.lanes.get(0);
  expect([lane?.length, lane?.[0]?.version, lane?.at(-1)?.version]).toEqual([100, 101, 200]);
});
