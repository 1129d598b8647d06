import { Feed, type FeedState } from '../../src/app/console/feed.js';
import { EntriesModel } from '../../src/app/console/model/entries-model.js';
import { changeText } from '../../src/app/console/services/services-model.js';
import { systemClock } from '../../src/core/base/system.js';
import type { ServiceEntry } from '../../src/node/wire/entries-wire.js';

/** What the page of services would know, read from a server as the page does it. */
export interface FollowedServices {
  readonly model: EntriesModel<ServiceEntry>;
  /** The states of the connection, in order. */
  readonly states: FeedState[];
  /** What stands at the place of an instance of the service `orders`. */
  order(id: string): ServiceEntry | undefined;
  /** What is known below a service, as `id: state`, in the order of the ids. */
  instances(service: string): string[];
  close(): void;
}

/** Follows the services of a server until it is closed. */
export function followServices(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): FollowedServices {
  const model = new EntriesModel<ServiceEntry>(systemClock, changeText);
  const states: FeedState[] = [];
  const closing = new AbortController();
  const feed = new Feed({
    open: (_, signal) =>
      fetch(`${url}/api/services`, { headers, signal: AbortSignal.any([signal, closing.signal]) }),
    clock: systemClock,
    random: () => 0,
    onState: (state) => {
      model.connection(state.kind === 'live');
      states.push(state);
    },
    onEvent: (event) => closing.signal.aborted || model.apply(event),
  });
  void feed.run();
  return {
    model,
    states,
    order: (id) => model.entries.get(`/services/orders/${id}`),
    instances: (service) =>
      [...model.entries.values()]
        .filter((entry) => entry.service === service && entry.id !== null)
        .map(({ id, instance, problem }) => `${id}: ${instance?.state ?? problem}`)
        .sort(),
    close: () => closing.abort(),
  };
}
