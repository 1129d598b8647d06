import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { throughProxy } from '../../../support/network/proxies.js';
import { seededRandom } from '../../../support/virtual-clock.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client } from '../discovery/discovery-support.js';
import {
  closeRegistrants,
  orders,
  type Registrant,
  registrant,
  renewSession,
  until,
} from './services-support.js';

const SERVICE = '/services/orders';
const TYPES = ['DYNAMIC', 'DYNAMIC_SEQUENTIAL', 'STATIC'] as const;

/** For each seed a test: chance decides what happens, and when. */
export function describeChance(seeds: readonly number[]): void {
  describe('whatever several registrants, their networks and strangers do', () => {
    let connect: string;
    let reader: ZooKeeperClient;

    beforeEach(() => {
      connect = `${inject('zookeeper').connect}${uniqueChroot()}`;
      reader = client(connect);
    });
    afterEach(closeRegistrants);

    async function names(): Promise<string[]> {
      return [...((await reader.children(SERVICE)) ?? [])].sort();
    }

    it.each(seeds)(
      'in the end there stands what is wanted, each once, and nothing else (seed %s)',
      async (seed) => {
        const random = seededRandom(seed);
        const choose = <T>(of: readonly T[]): T => of[Math.floor(random.next() * of.length)] as T;
        const lines = await Promise.all([0, 1, 2].map(() => throughProxy(connect)));
        const all = lines.map(({ through }) => registrant(through, { sessionTimeoutMs: 10_000 }));
        const ids = ['a', 'b'];
        const directory = new ServiceDirectory<unknown>({
          zookeeper: reader,
          clock: systemClock,
          payload: jsonPayload,
        });
        const troubles: Promise<unknown>[] = [];
        const stranger = (act: () => Promise<unknown>) => {
          const acted = act();
          troubles.push(acted);
          return acted;
        };
        const acts: (() => Promise<unknown> | undefined)[] = [
          ...[1, 2, 3, 4].map(
            () => () =>
              choose(all).discovery.register(
                orders({
                  id: choose(ids),
                  port: 1 + Math.floor(random.next() * 1_000),
                  serviceType: choose(TYPES),
                }),
              ),
          ),
          () => {
            const { discovery } = choose(all);
            const [known] = discovery.registered;
            return known && discovery.update({ ...known, port: 1 + Math.floor(random.next() * 1_000) });
          },
          () => choose(all).discovery.unregister({ name: 'orders', id: choose(ids) }),
          () => {
            const expired = renewSession(choose(all));
            troubles.push(expired);
            return expired;
          },
          async () => choose(lines).proxy.reset(),
          () => {
            const { proxy } = choose(lines);
            proxy.stall(choose(['to-client', 'to-server', 'both'] as const));
            const healed = sleep(100).then(() => proxy.heal({ deliverHeld: random.next() < 0.5 }));
            troubles.push(healed);
            return healed;
          },
          () => stranger(async () => reader.remove(`${SERVICE}/${choose(await names())}`)),
          () =>
            stranger(async () => {
              const path = `${SERVICE}/${choose(await names())}`;
              // A persistent one may be overwritten before its registrant has had a look at it, and be left
              // then.
              if ((await reader.read(path))?.stat.owner !== undefined) await reader.setData(path, 'scribble');
            }),
        ];
        for (let act = 0; act < 60; act += 1) {
          const done = choose(acts)()?.catch(() => undefined);
          if (random.next() < 0.3) await done;
          else await sleep(random.next() * 20);
        }
        await Promise.allSettled(troubles);
        // A session may have ended unheard: it takes an answer to know of the present one.
        await Promise.all(
          all.map(({ zookeeper }) =>
            until(
              () =>
                zookeeper.children('/').then(
                  () => true,
                  () => false,
                ),
              30_000,
            ),
          ),
        );
        const show = ({ id, port, serviceType }: ServiceInstance) => `${id} ${port} ${serviceType}`;
        const isAtWork = ({ discovery: { state } }: Registrant) =>
          state.status !== 'synced' &&
          !(state.status === 'degraded' && state.problem.includes('registered by somebody else'));
        const wrong = async (): Promise<string | undefined> => {
          const found = await directory.instances('orders');
          const wanted = all.flatMap(({ discovery }) => discovery.registered);
          const isNumbered = ({ serviceType }: ServiceInstance) => serviceType === 'DYNAMIC_SEQUENTIAL';
          const right = ids.every((id) => {
            const named = (of: readonly ServiceInstance[]) =>
              of.filter((each) => each.id === id && !isNumbered(each)).map(show);
            const [theirs, ours] = [named(found), named(wanted)];
            return theirs.length === Math.min(1, ours.length) && theirs.every((each) => ours.includes(each));
          });
          const numbers = [found, wanted].map((of) => of.filter(isNumbered).map(show).sort().join());
          const standing = await names();
          if (right && numbers[0] === numbers[1] && found.length === standing.length) return undefined;
          return JSON.stringify({
            standing,
            found: found.map(show),
            wanted: wanted.map(show),
            states: all.map(({ discovery }) => discovery.state),
          });
        };
        let last: string | undefined;
        await until(async () => {
          last = await wrong();
          return last === undefined && !all.some(isAtWork);
        }, 30_000).catch((error: unknown) => {
          throw new Error(last ?? 'somebody is still at work', { cause: error });
        });
        // And it stays so.
        for (let i = 0; i < 10; i += 1) {
          await sleep(50);
          expect(await wrong()).toBeUndefined();
        }
        await Promise.all(all.map(({ discovery }) => discovery.close()));
        expect(await names()).toEqual([]);
      },
    );
  });
}
