import * as undici6 from 'undici';
import * as undici7 from 'undici-7';
import { it } from 'vitest';
import { type FetchDispatcher, serviceDispatcher } from '../../../../src/zookeeper/services/routing/index.js';
import {
  asksAnotherInTime,
  describeRouting,
  type OpenClient,
  type RoutingClient,
  type SendInit,
} from './routing-suite.js';

const undici6Request: RoutingClient = {
  replaysText: true,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici6.Agent() });
    return {
      send: async (path, init) => {
        const { statusCode, body } = await undici6.request(`http://orders${path}`, {
          ...request(init),
          dispatcher,
        });
        return { status: statusCode, text: () => body.text() };
      },
      close: () => closed(dispatcher),
    };
  },
};

const undici7Request: RoutingClient = {
  replaysText: true,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici7.Agent() });
    return {
      send: async (path, init) => {
        const { statusCode, body } = await undici7.request(`http://orders${path}`, {
          ...request(init),
          dispatcher,
        });
        return { status: statusCode, text: () => body.text() };
      },
      close: () => closed(dispatcher),
    };
  },
};

const fetchOver6: RoutingClient = {
  replaysText: false,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici6.Agent() });
    return {
      // The types of Node 20 know the undici inside it only.
      send: (path, init) =>
        fetch(`http://orders${path}`, { ...init, dispatcher: dispatcher as unknown as FetchDispatcher }),
      close: () => closed(dispatcher),
    };
  },
};

const fetchOver7: RoutingClient = {
  replaysText: false,
  closes: true,
  open: (provider, options = {}): OpenClient => {
    const dispatcher = serviceDispatcher(provider, { ...options, dispatcher: new undici7.Agent() });
    return {
      send: (path, init) =>
        fetch(`http://orders${path}`, { ...init, dispatcher: dispatcher as unknown as FetchDispatcher }),
      close: () => closed(dispatcher),
    };
  },
};

describeRouting('request of undici 6', undici6Request);
describeRouting('request of undici 7', undici7Request);
describeRouting('the global fetch with an Agent of undici 6', fetchOver6);
describeRouting('the global fetch with an Agent of undici 7', fetchOver7);

it('each of them asks another instance when one does not answer in time', () =>
  asksAnotherInTime(undici6Request, undici7Request, fetchOver6, fetchOver7));

function request({ method = 'GET', ...rest }: SendInit = {}) {
  return { method: method as 'GET', ...rest };
}

/** Closing waits for the requests under way, destroying does not; either may have been done already. */
async function closed(dispatcher: { destroy(): Promise<void> }): Promise<void> {
  await dispatcher.destroy();
}
