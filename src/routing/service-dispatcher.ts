import type { Dispatch, DispatchHandler, DispatchOptions } from './dispatch.js';
import type { InstancePicker } from './instance-target.js';
import { checkRoutingOptions, type RoutingOptions } from './routing-options.js';
import { route, serviceInterceptor } from './service-interceptor.js';

/** A dispatcher of undici's, such as an `Agent`. */
export interface ComposableDispatcher {
  /** The same dispatcher with interceptors before it. */
  compose(...interceptors: never[]): unknown;
}

/**
 * What the global `fetch` takes as its `dispatcher`, going by the types of Node that a project has: a dispatcher of that one version of undici
 * which they know.
 */
export type FetchDispatcher = RequestInit extends { dispatcher?: infer D } ? NonNullable<D> : object;

/**
 * Sends every request that is meant for a service to one of its instances:
 *
 * ```ts
 * const dispatcher = serviceDispatcher(provider, { dispatcher: new Agent() });
 * await request('http://orders/items/7', { dispatcher });   // undici's request, stream, pipeline, fetch …
 * await dispatcher.request({ path: '/items/7', method: 'GET' });
 *
 * await fetch('http://orders/items/7', { dispatcher: serviceDispatcher(provider) });   // Node's own
 * ```
 *
 * - **Where to.** An instance is picked for every request; scheme, address and port are its own, and a path in its uriSpec comes before that of
 *   the request. The `Host` header, and with TLS the name that the certificate must bear, are the instance's, unless the request sets `Host`.
 * - **Which.** Those to the service's name as the host, see {@link RoutingOptions.hosts}, and those that name no origin. Others pass through.
 * - **Errors.** What fails on the way to an instance, or there, is noted with the provider: no connection, a reset, no answer in time, an
 *   answer cut off, a status of {@link RoutingOptions.retryStatuses}. An abort by the caller, or an error of its own body, is not.
 * - **Again.** As long as the caller has seen no response, another instance is asked: always where no connection could be made, for then nothing
 *   was sent; otherwise only if the method is idempotent (GET, HEAD, OPTIONS, PUT, DELETE, TRACE, or `idempotent: true` of undici) and the body
 *   can be sent twice. A stream cannot. Every body of `fetch` is one, even a string: a PUT by `fetch` is repeated only where no connection was
 *   made, one by `request` always. Upgrades and CONNECT are tried once. There is no wait in between, and no instance is asked twice.
 * - **No instance.** `NoInstanceError`, for `fetch` as the `cause` of its `TypeError`. Await the provider's `ready` before the first request.
 *
 * **Types.** The global `fetch` does take an `Agent` of undici 6 or 7, and so a dispatcher that is made of one, whatever version Node has inside.
 * Its types name one version alone, and do not accept an `Agent` of another, nor what is made of it (TS2375, TS2322). Say so where it is passed:
 *
 * ```ts
 * const dispatcher = serviceDispatcher(provider, { dispatcher: new Agent() });
 * await fetch('http://orders/items/7', { dispatcher: dispatcher as unknown as FetchDispatcher });
 * ```
 *
 * How long a connection, or an answer, may take is the dispatcher's to say (undici: 10 s and 300 s); so are TLS, keep-alive and the number of
 * connections to each instance. An `Agent` of undici 6 keeps a little memory for each origin that it has ever seen; undici 7 does not.
 *
 * @param options `dispatcher`: an `Agent` or another dispatcher of undici 6 or 7. What comes back is of its kind; closing it closes the one that
 *   was given. Whatever can use that one can use this one: the functions of undici 6 and 7 and the `fetch` of Node 20 take either version
 * @throws ConfigError for an option that is out of its range
 */
export function serviceDispatcher<P, D extends ComposableDispatcher>(
  provider: InstancePicker<P>,
  options: RoutingOptions & { readonly dispatcher: D },
): ReturnType<D['compose']>;

/**
 * The same over the global dispatcher, Node's own or what `setGlobalDispatcher` put in its place by the time of a request. It is good for
 * `fetch`, and for whatever else only calls `dispatch`: it has no other methods, and there is nothing to close.
 *
 * @throws ConfigError for an option that is out of its range
 */
export function serviceDispatcher<P>(
  provider: InstancePicker<P>,
  options?: RoutingOptions & { readonly dispatcher?: undefined },
): FetchDispatcher;

export function serviceDispatcher<P>(
  provider: InstancePicker<P>,
  options: RoutingOptions & { readonly dispatcher?: ComposableDispatcher | undefined } = {},
): unknown {
  const { dispatcher, ...routing } = options;
  if (dispatcher !== undefined) return dispatcher.compose(serviceInterceptor(provider, routing) as never);
  const settings = checkRoutingOptions(provider.name, routing);
  return {
    dispatch: (request: DispatchOptions, handler: DispatchHandler) => route(provider, settings, globalDispatch(handler), request, handler),
  };
}

// Where undici's versions keep the dispatcher of the process: the first one for those with the handlers of undici 6, Node's own up to 24 among
// them, the second one for those that know only the new handlers.
const LEGACY_SLOT = Symbol.for('undici.globalDispatcher.1');
const SLOT = Symbol.for('undici.globalDispatcher.2');

/**
 * The dispatcher that the global `fetch` uses where it is given none: Node's own, or what was put in its place with `setGlobalDispatcher` of any
 * undici.
 *
 * @param handler for whom
 */
export function globalDispatch(handler: DispatchHandler): Dispatch {
  // Node loads its undici, and sets the dispatcher, when one of its classes is first asked for.
  void Headers;
  // biome-ignore lint/style/noRestrictedGlobals: neither time nor chance: undici keeps its dispatcher nowhere else.
  const slots = globalThis as unknown as Record<symbol, { dispatch: Dispatch } | undefined>;
  const dispatcher = 'onRequestStart' in handler ? (slots[SLOT] ?? slots[LEGACY_SLOT]) : slots[LEGACY_SLOT];
  if (dispatcher === undefined) throw new TypeError('This runtime keeps no global dispatcher where undici does: pass one.');
  return (request, to) => dispatcher.dispatch(request, to);
}
