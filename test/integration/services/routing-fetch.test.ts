import { serviceDispatcher } from '../../../src/services/routing/index.js';
import { describeRouting } from './routing-suite.js';

// No undici is imported here, so that the one inside Node is what fetch uses.
describeRouting('the global fetch', {
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
});
