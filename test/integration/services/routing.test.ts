import * as undici6 from 'undici';
import * as undici7 from 'undici-7';
import { type FetchDispatcher, serviceDispatcher } from '../../../src/services/routing/index.js';
import { describeRouting, type OpenClient, type SendInit } from './routing-suite.js';

describeRouting('request of undici 6', {
  replaysText: true,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici6.Agent() });
    return {
      send: async (path, init) => {
        const { statusCode, body } = await undici6.request(`http://orders${path}`, { ...request(init), dispatcher });
        return { status: statusCode, text: () => body.text() };
      },
      close: () => closed(dispatcher),
    };
  },
});

describeRouting('request of undici 7', {
  replaysText: true,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici7.Agent() });
    return {
      send: async (path, init) => {
        const { statusCode, body } = await undici7.request(`http://orders${path}`, { ...request(init), dispatcher });
        return { status: statusCode, text: () => body.text() };
      },
      close: () => closed(dispatcher),
    };
  },
});

describeRouting('the global fetch with an Agent of undici 6', {
  replaysText: false,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici6.Agent() });
    return {
      // The types of Node 20 know the undici inside it only.
      send: (path, init) => fetch(`http://orders${path}`, { ...init, dispatcher: dispatcher as unknown as FetchDispatcher }),
      close: () => closed(dispatcher),
    };
  },
});

describeRouting('the global fetch with an Agent of undici 7', {
  replaysText: false,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici7.Agent() });
    return {
      send: (path, init) => fetch(`http://orders${path}`, { ...init, dispatcher: dispatcher as unknown as FetchDispatcher }),
      close: () => closed(dispatcher),
    };
  },
});

function request({ method = 'GET', ...rest }: SendInit = {}) {
  return { method: method as 'GET', ...rest };
}

/** Closing waits for the requests under way, destroying does not; either may have been done already. */
async function closed(dispatcher: { destroy(): Promise<void> }): Promise<void> {
  await dispatcher.destroy();
}
