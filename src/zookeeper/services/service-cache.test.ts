import { describe, expect, it } from 'vitest';
import { instanceOf } from '../../../test/support/service-instances.js';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { WatchedTree } from '../../../test/support/watched-tree.js';
import { WatchedInstances } from './service-cache.js';

const PATH = '/services/orders';

function watched() {
  const tree = new WatchedTree();
  const clock = new VirtualClock();
  const reports: string[] = [];
  const seen = { ready: false, closed: 0 };
  const source = new WatchedInstances({
    ...{ zookeeper: tree, clock, name: 'orders', path: PATH },
    decode: (id) => ({ status: 'readable', instance: instanceOf(id) }),
    onUnreadable: (path, problem) => reports.push(`${path} ${problem}`),
    onClose: () => {
      seen.closed += 1;
    },
  });
  void source.ready.then(() => {
    seen.ready = true;
  });
  const answerData = (ids: readonly string[]) => {
    for (const id of ids) tree.answer(`${PATH}/${id}`, Buffer.from(id));
  };
  const ids = () => source.instances.map(({ id }) => id);
  return { tree, clock, reports, seen, source, answerData, ids };
}

const IDS = Array.from({ length: 400 }, (_, index) => `i${1_000 + index}`);

describe('instances that are read over a slow link', () => {
  it('are waited for, all of them, and none is reported', async () => {
    const { tree, clock, reports, seen, source, answerData, ids } = watched();
    await clock.advance(20_000);
    tree.answer(PATH, IDS);
    for (let first = 0; first < IDS.length; first += 10) {
      expect([seen.ready, ids()]).toEqual([false, []]);
      answerData(IDS.slice(first, first + 10));
      await clock.advance(2_000);
    }
    expect([seen.ready, ids(), reports, source.stale]).toEqual([true, IDS, [], undefined]);
  });

  it('stay as they were seen last after a reconnect, until they have been read again', async () => {
    const { tree, clock, reports, source, answerData, ids } = watched();
    tree.answer(PATH, IDS);
    answerData(IDS);
    await settled();
    const reported: number[] = [];
    source.onChange((instances) => reported.push(instances.length));
    tree.lose();
    tree.connect();
    // Not a single answer for a minute, and then one every two seconds.
    await clock.advance(60_000);
    tree.answer(PATH, IDS);
    for (const id of IDS.slice(0, 30)) {
      answerData([id]);
      await clock.advance(2_000);
    }
    expect([ids(), reported, reports]).toEqual([IDS, [], []]);
    expect(source.stale).toEqual({ since: 0 });
    answerData(IDS.slice(30));
    expect(source.stale).toBeUndefined();
  });

  it('are left out if the servers refuse them', async () => {
    const { tree, clock, reports, source, answerData, ids } = watched();
    tree.answer(PATH, ['a', 'b', 'c']);
    answerData(['a', 'b', 'c']);
    tree.lose();
    tree.connect();
    tree.refused.add(`${PATH}/b`);
    tree.answer(PATH, ['a', 'b', 'c']);
    answerData(['a', 'c']);
    await clock.advance(4_900);
    expect([ids(), source.stale]).toEqual([['a', 'b', 'c'], { since: 0 }]);
    await clock.advance(1_100);
    expect([ids(), source.stale]).toEqual([['a', 'c'], undefined]);
    expect(reports).toEqual([`${PATH}/b has not let itself be read for 5 s`]);
    // Its watch continues.
    answerData(['b']);
    await settled();
    expect(ids()).toEqual(['a', 'b', 'c']);
  });

  it('hide no known instance if the service itself is refused, and report that', async () => {
    const { tree, clock, reports, source, answerData, ids } = watched();
    tree.answer(PATH, ['a']);
    answerData(['a']);
    tree.lose();
    tree.connect();
    tree.refused.add(PATH);
    answerData(['a']);
    await clock.advance(30_000);
    expect([ids(), source.stale, reports]).toEqual([
      ['a'],
      { since: 0 },
      [`${PATH} has not let itself be read for 5 s`],
    ]);
  });
});

describe('the end of a source', () => {
  it('is the end of its watches and of all its listeners', async () => {
    const { tree, clock, seen, source, answerData } = watched();
    tree.answer(PATH, ['a', 'b']);
    answerData(['a']);
    expect([tree.watched.length, tree.sessionListeners]).toEqual([3, 1]);
    const reported: string[] = [];
    source.onChange(() => {
      reported.push('first');
      source.close();
    });
    source.onChange(() => reported.push('second'));
    // The first listener ends it.
    answerData(['b']);
    await settled();
    expect(reported).toEqual(['first']);
    source.close();
    expect([tree.watched, tree.sessionListeners, clock.sleepers, seen.closed]).toEqual([[], 0, 0, 1]);
    source.onChange(() => reported.push('late'));
    tree.lose();
    tree.connect();
    await clock.advance(10_000);
    expect([reported, tree.watched]).toEqual([['first'], []]);
  });
});
