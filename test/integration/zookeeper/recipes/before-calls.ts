import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';

/**
 * The same client, with something to be done just before the first call of one operation, such as holding its
 * reply back.
 */
export function beforeFirst(
  client: ZooKeeper,
  operation: keyof ZooKeeper,
  act: () => void | Promise<void>,
): ZooKeeper {
  let isOver = false;
  return new Proxy(client, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      if (key !== operation) return member.bind(target);
      return async (...args: unknown[]) => {
        const isFirst = !isOver;
        isOver = true;
        if (isFirst) await act();
        return member.apply(target, args);
      };
    },
  });
}
