import { describe, expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { WatchedTree } from '../../../test/support/watched-tree.js';
import { ChildrenView, type ChildrenViewOptions } from './children-view.js';

const PATH = '/endpoints/pay';

/** Two levels of znodes, whose values are their data as text. */
function viewed(options: Partial<ChildrenViewOptions<string>> = {}) {
  const tree = new WatchedTree();
  const clock = new VirtualClock();
  const seen = { ready: false, values: [] as string[], changes: 0, problems: [] as string[] };
  const view = new ChildrenView<string>({
    ...{ zookeeper: tree, clock, path: PATH },
    follow: (_, depth) => (depth < 2 ? 'children' : 'data'),
    decode: (_, { data }, before) => (before === String(data) ? before : String(data)),
    unreadable: (path, problem) => {
      seen.problems.push(`${path} ${problem}`);
      return undefined;
    },
    onValue: (path, value, before) => seen.values.push(`${path}: ${before} → ${value}`),
    onChange: () => {
      seen.changes += 1;
    },
    ...options,
  });
  view.start();
  void view.ready.then(() => {
    seen.ready = true;
  });
  const list = (key: string, ...names: string[]) => tree.answer(`${PATH}/${key}`, names);
  const write = (path: string, text: string) => tree.answer(`${PATH}/${path}`, Buffer.from(text));
  return { tree, clock, seen, view, list, write };
}

describe('a view of children', () => {
  it('is ready once all has been read, in the order of the names', async () => {
    const { tree, seen, view, list, write } = viewed();
    tree.answer(PATH, ['visa', 'amex']);
    list('visa', '2');
    write('visa/2', 'two');
    list('amex', '3', '1');
    write('amex/1', 'one');
    await settled();
    expect([seen.ready, view.values(), view.stale, seen.changes]).toEqual([
      false,
      ['one', 'two'],
      { since: 0 },
      0,
    ]);
    write('amex/3', 'three');
    await settled();
    expect([seen.ready, view.values(), view.stale, seen.changes]).toEqual([
      true,
      ['one', 'three', 'two'],
      undefined,
      1,
    ]);
  });

  it('reports the changes of one packet once, and nothing if the value is the same', async () => {
    const { tree, seen, view, list, write } = viewed();
    tree.answer(PATH, ['visa']);
    list('visa', '1', '2');
    write('visa/1', 'one');
    write('visa/2', 'two');
    await settled();
    seen.values = [];
    write('visa/1', 'one');
    await settled();
    expect([seen.values, seen.changes]).toEqual([[], 1]);
    write('visa/1', 'uno');
    list('visa', '1');
    await settled();
    const [first, second] = [`${PATH}/visa/1: one → uno`, `${PATH}/visa/2: two → undefined`];
    expect([seen.values, seen.changes, view.values()]).toEqual([[first, second], 2, ['uno']]);
    expect([view.has(`${PATH}/visa/1`), view.has(`${PATH}/visa/2`)]).toEqual([true, false]);
    tree.answer(PATH, undefined);
    await settled();
    expect([view.values(), view.size, tree.watched]).toEqual([[], 1, [PATH]]);
  });

  it('does not wait for a list that the servers refuse, and follows it when they allow it', async () => {
    const { tree, clock, seen, view, list, write } = viewed();
    tree.refused.add(`${PATH}/secret`);
    tree.answer(PATH, ['secret', 'visa']);
    list('visa', '2');
    write('visa/2', 'two');
    await clock.advance(5_000);
    expect([seen.ready, view.values(), view.stale]).toEqual([true, ['two'], undefined]);
    expect(seen.problems).toEqual([`${PATH}/secret has not let itself be read for 5 s`]);
    list('secret', '1');
    write('secret/1', 'one');
    expect([view.values(), view.stale]).toEqual([['one', 'two'], undefined]);
  });

  it('waits for the list at the top, however long it is refused', async () => {
    const { tree, clock, seen, view } = viewed();
    tree.refused.add(PATH);
    await clock.advance(11_000);
    const problem = `${PATH} has not let itself be read for 5 s`;
    expect([seen.ready, seen.problems]).toEqual([false, [problem, problem]]);
    tree.answer(PATH, []);
    await settled();
    expect([seen.ready, view.stale]).toEqual([true, undefined]);
  });

  it('never gives up a read that is only slow, and does not count the time without a connection', async () => {
    const { tree, clock, seen, view, list } = viewed();
    tree.answer(PATH, ['visa']);
    await clock.advance(60_000);
    list('visa', '1', '2');
    await clock.advance(60_000);
    tree.lose();
    tree.connect();
    tree.answer(PATH, ['visa']);
    list('visa', '1', '2');
    tree.lose();
    tree.refused.add(`${PATH}/visa/1`).add(`${PATH}/visa/2`);
    await clock.advance(60_000);
    expect(seen.problems).toEqual([]);
    tree.connect();
    tree.answer(PATH, ['visa']);
    list('visa', '1', '2');
    await clock.advance(4_900);
    expect([seen.ready, seen.problems]).toEqual([false, []]);
    await clock.advance(1_000);
    expect([seen.ready, seen.problems.length, view.stale]).toEqual([true, 2, undefined]);
    await clock.advance(1_000);
    expect(clock.sleepers).toBe(0);
  });

  it('is stale until the next connection if the last answer comes after the loss of its connection', async () => {
    const { tree, seen, view, list } = viewed();
    tree.answer(PATH, ['visa']);
    tree.lose();
    list('visa');
    await settled();
    expect([seen.ready, view.stale]).toEqual([false, { since: 0 }]);
    tree.connect();
    tree.answer(PATH, ['visa']);
    list('visa');
    await settled();
    expect([seen.ready, view.stale]).toEqual([true, undefined]);
  });

  it('is stale from the loss of the connection until all has been read again', async () => {
    const { tree, clock, seen, view, list, write } = viewed();
    tree.answer(PATH, ['visa']);
    list('visa', '2');
    write('visa/2', 'two');
    await clock.advance(1_000);
    tree.lose();
    await clock.advance(1_000);
    tree.connect();
    expect([view.values(), view.stale]).toEqual([['two'], { since: 1_000 }]);
    tree.answer(PATH, ['visa']);
    list('visa', '2');
    expect(view.stale).toEqual({ since: 1_000 });
    write('visa/2', 'two');
    expect([view.stale, seen.changes]).toEqual([undefined, 2]);
  });

  it('is stale until a new list has been read, and all below it', async () => {
    const { tree, view, list, write } = viewed();
    tree.answer(PATH, []);
    await settled();
    tree.answer(PATH, ['visa']);
    list('visa', '2');
    expect(view.stale).toEqual({ since: 0 });
    write('visa/2', 'two');
    expect([view.values(), view.stale]).toEqual([['two'], undefined]);
  });

  it('stays stale if a list is refused that could be read before, and hides nothing of it', async () => {
    const { tree, clock, view, list, write } = viewed();
    tree.answer(PATH, ['visa']);
    list('visa', '2');
    write('visa/2', 'two');
    tree.lose();
    tree.connect();
    tree.refused.add(`${PATH}/visa`);
    tree.answer(PATH, ['visa']);
    write('visa/2', 'two');
    await clock.advance(20_000);
    expect([view.values(), view.stale]).toEqual([['two'], { since: 0 }]);
  });

  it('is stale as soon as the servers refuse what it has read, and gives the value up after 5 s', async () => {
    const { tree, clock, seen, view, list, write } = viewed({
      unreadable: (path) => (path.endsWith('/2') ? 'secret' : undefined),
    });
    tree.answer(PATH, ['visa']);
    list('visa', '1', '2');
    write('visa/1', 'one');
    write('visa/2', 'two');
    await clock.advance(1_000);
    tree.refuse(`${PATH}/visa/2`);
    await clock.advance(4_000);
    expect([view.values(), view.stale]).toEqual([['one', 'two'], { since: 1_000 }]);
    await clock.advance(2_000);
    expect([view.values(), view.stale, seen.changes]).toEqual([['one', 'secret'], undefined, 3]);
    write('visa/2', 'two');
    tree.refuse(`${PATH}/visa`);
    await clock.advance(20_000);
    expect([view.values(), view.stale]).toEqual([['one', 'two'], { since: 7_000 }]);
  });

  it('requests no name that no client can request, and leaves out what is not to be followed', async () => {
    const { tree, seen, view } = viewed({
      follow: (path, depth) => (depth === 0 ? 'children' : path.endsWith('/lock') ? undefined : 'data'),
    });
    tree.answer(PATH, ['a\u0001', 'lock']);
    await settled();
    expect([seen.ready, tree.watched, view.size]).toEqual([true, [PATH], 2]);
    expect(seen.problems).toEqual([
      `${PATH}/a\u0001 cannot be asked for: a name contains a character that the servers refuse`,
    ]);
  });

  it('reports nothing once it is closed, and leaves nothing open', async () => {
    const { tree, clock, seen, view, list, write } = viewed();
    tree.answer(PATH, ['visa']);
    list('visa', '2');
    write('visa/2', 'two');
    write('visa/2', 'due');
    view.close();
    view.close();
    await settled();
    expect([seen.changes, tree.watched, tree.sessionListeners, clock.sleepers]).toEqual([1, [], 0, 0]);
    await clock.advance(1_000);
    expect([view.values(), view.stale]).toEqual([['due'], { since: 0 }]);
  });

  it('leaves no timer behind where its client is closed while znodes have not been read', async () => {
    const { tree, clock, view } = viewed();
    expect(clock.sleepers).toBe(1);
    tree.close();
    await settled();
    expect([view.isClosed, tree.watched, tree.sessionListeners, clock.sleepers]).toEqual([true, [], 0, 0]);
  });
});
