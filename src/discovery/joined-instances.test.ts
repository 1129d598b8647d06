import { describe, expect, it } from 'vitest';
import { instanceOf, TestSource } from '../../test/support/service-instances.js';
import { settled, VirtualClock } from '../../test/support/virtual-clock.js';
import { WatchedTree } from '../../test/support/watched-tree.js';
import type { ServiceInstance } from '../services/service-instance.js';
import { JoinedInstances } from './discovery-resolver.js';

const PATH = '/endpoints/pay';

/** What stands below one child, read when a test says so. */
class Part extends TestSource {
  override stale: { readonly since: number } | undefined = { since: 0 };
  becomeReady: () => void = () => undefined;
  override readonly ready: Promise<void> = new Promise((resolve) => {
    this.becomeReady = resolve;
  });

  constructor(readonly onRefused: () => void) {
    super([]);
  }

  read(...instances: ServiceInstance[]): void {
    this.stale = undefined;
    this.set(instances);
    this.becomeReady();
  }
}

function joined() {
  const tree = new WatchedTree();
  const clock = new VirtualClock();
  const parts = new Map<string, Part>();
  const seen = { ready: false };
  const source = new JoinedInstances({
    ...{ zookeeper: tree, clock, name: 'pay', path: PATH },
    open: (name, onRefused) => {
      const part = new Part(onRefused);
      parts.set(name, part);
      return part;
    },
  });
  void source.ready.then(() => {
    seen.ready = true;
  });
  const part = (name: string) => parts.get(name) as Part;
  const ids = () => source.instances.map(({ id }) => id).join();
  return { tree, clock, seen, source, part, ids };
}

describe('the instances below all children', () => {
  it('are told once all of them have been read', async () => {
    const { tree, seen, source, part, ids } = joined();
    tree.tell(PATH, ['visa', 'amex']);
    part('visa').read(instanceOf('2'));
    await settled();
    expect([seen.ready, ids(), source.stale]).toEqual([false, '', { since: 0 }]);
    part('amex').read(instanceOf('1'));
    await settled();
    expect([seen.ready, ids(), source.stale]).toEqual([true, '1,2', undefined]);
  });

  it('are not hidden by a child that the servers refuse, which joins when they let it be read', async () => {
    const { tree, seen, source, part, ids } = joined();
    tree.tell(PATH, ['secret', 'visa']);
    part('visa').read(instanceOf('2'));
    part('secret').onRefused();
    await settled();
    expect([seen.ready, ids(), source.stale]).toEqual([true, '2', undefined]);
    part('secret').onRefused();
    part('secret').read(instanceOf('1'));
    await settled();
    expect([ids(), source.stale]).toEqual(['1,2', undefined]);
  });

  it('are stale where a child is refused that could be read before', async () => {
    const { tree, source, part, ids } = joined();
    tree.tell(PATH, ['visa']);
    part('visa').read(instanceOf('2'));
    await settled();
    part('visa').stale = { since: 7 };
    part('visa').onRefused();
    await settled();
    expect([ids(), source.stale]).toEqual(['2', { since: 7 }]);
  });

  it('are stale from the loss of the connection until the children have been read again', async () => {
    const { tree, clock, source, part, ids } = joined();
    tree.tell(PATH, ['visa']);
    part('visa').read(instanceOf('2'));
    await settled();
    expect(source.stale).toBeUndefined();
    await clock.advance(1_000);
    tree.lose();
    expect([ids(), source.stale]).toEqual(['2', { since: 1_000 }]);
    await clock.advance(1_000);
    tree.connect();
    expect(source.stale).toEqual({ since: 1_000 });
    tree.tell(PATH, ['visa']);
    expect(source.stale).toBeUndefined();
  });

  it('are told to no listener any more once they are closed, and nothing is left open', async () => {
    const { tree, clock, source, part } = joined();
    tree.tell(PATH, ['visa']);
    part('visa').read(instanceOf('2'));
    await settled();
    const told: string[] = [];
    source.onChange(() => {
      told.push('first');
      source.close();
    });
    source.onChange(() => told.push('second'));
    part('visa').set([instanceOf('3')]);
    await settled();
    expect(told).toEqual(['first']);
    source.close();
    expect([tree.watched, tree.sessionListeners, part('visa').closed]).toEqual([[], 0, 1]);
    await clock.advance(1_000);
    expect(source.stale).toEqual({ since: 0 });
  });
});
