import { it } from 'vitest';
import { serviceDispatcher } from '../../../../src/zookeeper/services/routing/index.js';
import { asksAnotherInTime, describeRouting, type RoutingClient } from './routing-suite.js';

// No undici is imported here, so that the one inside Node is what fetch uses.
const globalFetch: RoutingClient = {
  replaysText: false,
  // Node's own dispatcher outlives the tests: its connections end with those of the servers.
  closes: false,
  open: (provider, options = {}) => {
    const dispatcher = serviceDispatcher(provider, options);
    return {
      send: (path, init) => fetch(`http://orders${path}`, { ...init, dispatcher }),
      close: async () => {},
    };
  },
};

describeRouting('the global fetch', globalFetch);

it('the global fetch asks another instance when one does not answer in time', () =>
  asksAnotherInTime(globalFetch));
