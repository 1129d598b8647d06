import { ControlledAttempt, ExchangeController, LegacyAttempt } from './attempt-handlers.js';
import type { ControlledHandler, Dispatch, DispatchHandler, DispatchOptions } from './dispatch.js';
import { Exchange, type NewAttempt } from './exchange.js';
import type { InstancePicker } from './instance-target.js';
import { checkRoutingOptions, type RoutingOptions, type RoutingSettings } from './routing-options.js';

/** A dispatcher of undici's, such as an `Agent`. */
export interface ComposableDispatcher {
  /** The same dispatcher with interceptors before it. */
  compose(...interceptors: never[]): unknown;
}

/** What the global `fetch` takes as its `dispatcher`, by the types of Node that a project has. */
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
 * - **Target.** Each request gets the scheme, address and port of an instance, and the path in its uriSpec before its own. The `Host` header and
 *   the TLS server name are the instance's, unless the request sets `Host`.
 * - **Which requests.** Those whose host is the service's name, see {@link RoutingOptions.hosts}, or that have no origin. Others pass through.
 * - **Errors.** The provider notes: no connection, a reset, no answer in time, an answer cut off, a status of
 *   {@link RoutingOptions.retryStatuses}. It does not note an abort by the caller, or an error of the caller's body.
 * - **Retries.** Until the caller has seen a response, another instance is asked: always when no connection could be made, else only if the
 *   method is idempotent (GET, HEAD, OPTIONS, PUT, DELETE, TRACE, or undici's `idempotent: true`) and the body can be sent twice. A stream cannot,
 *   and every body of `fetch` is one. Upgrades and CONNECT are tried once. There is no pause, and no instance is asked twice.
 * - **No instance.** `NoInstanceError`, for `fetch` as the `cause` of its `TypeError`. Await the provider's `ready` before the first request.
 *
 * **Types.** At run time the global `fetch` takes a dispatcher made of an `Agent` of undici 6 or 7. Its types accept one version of undici only
 * (TS2375, TS2322), so cast it: `{ dispatcher: dispatcher as unknown as FetchDispatcher }`.
 *
 * Time-outs (undici: 10 s for a connection, 300 s for an answer), TLS, keep-alive and the number of connections are the dispatcher's. An `Agent`
 * of undici 6 keeps some memory for each origin that it has seen; undici 7 does not.
 *
 * @param options `dispatcher`: an `Agent` or another dispatcher of undici 6 or 7. The result is of its kind; closing it closes the given one
 * @throws ConfigError for an option that is out of its range
 */
export function serviceDispatcher<P, D extends ComposableDispatcher>(
  provider: InstancePicker<P>,
  options: RoutingOptions & { readonly dispatcher: D },
): ReturnType<D['compose']>;

/**
 * The same over the global dispatcher of the moment: Node's own, or the one that `setGlobalDispatcher` has set. It has no method but
 * `dispatch`, which is enough for `fetch`; there is nothing to close.
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

/**
 * What `Dispatcher.compose` of undici takes, whichever version of it.
 *
 * @typeParam D - the `dispatch` that is wrapped
 */
export type ServiceInterceptor = <D extends (options: never, handler: never) => boolean>(dispatch: D) => D;

/**
 * The routing of {@link serviceDispatcher} as one interceptor of several: `agent.compose(serviceInterceptor(provider), …)`. undici calls the last
 * one first.
 *
 * @throws ConfigError for an option that is out of its range
 */
export function serviceInterceptor<P>(provider: InstancePicker<P>, options: RoutingOptions = {}): ServiceInterceptor {
  const settings = checkRoutingOptions(provider.name, options);
  return (<D>(dispatch: D) => {
    const base = dispatch as Dispatch;
    // undici counts the parameters.
    return (request: DispatchOptions, handler: DispatchHandler) => route(provider, settings, base, request, handler);
  }) as unknown as ServiceInterceptor;
}

/** Sends a request to an instance, or, where it is not meant for the service, to where it says. */
function route<P>(
  provider: InstancePicker<P>,
  settings: RoutingSettings,
  base: Dispatch,
  request: DispatchOptions,
  handler: DispatchHandler,
): boolean {
  // What is wrong with the request itself is for undici to say.
  if (!isRequest(request) || !settings.isMeant(request.origin)) return base(request, handler);
  // The dispatcher gets the sort of handler that the caller has: what works together without us does so with us.
  if (isControlled(handler)) {
    const steering = new ExchangeController();
    const newAttempt: NewAttempt = (exchange, instance) => new ControlledAttempt(exchange, instance, steering, handler);
    return new Exchange(provider, settings, base, request, newAttempt, (error) =>
      handler.onResponseError?.(steering.controller, error),
    ).start();
  }
  const newAttempt: NewAttempt = (exchange, instance) => new LegacyAttempt(exchange, instance, handler);
  return new Exchange(provider, settings, base, request, newAttempt, (error) => handler.onError?.(error)).start();
}

function isControlled(handler: DispatchHandler): handler is ControlledHandler {
  return 'onRequestStart' in handler && typeof handler.onRequestStart === 'function';
}

function isRequest(request: DispatchOptions): boolean {
  return typeof request === 'object' && request !== null && typeof request.path === 'string' && typeof request.method === 'string';
}

// Where undici keeps the dispatcher of the process: the first for versions with the handlers of undici 6, as Node up to 24 has, the second for
// those that know the new handlers only.
const LEGACY_SLOT = Symbol.for('undici.globalDispatcher.1');
const SLOT = Symbol.for('undici.globalDispatcher.2');

/** The dispatcher that the global `fetch` uses by default, for a handler of this kind. */
export function globalDispatch(handler: DispatchHandler): Dispatch {
  // Node loads its undici, and sets the dispatcher, when one of its classes is first asked for.
  void Headers;
  // biome-ignore lint/style/noRestrictedGlobals: neither time nor chance: undici keeps its dispatcher nowhere else.
  const slots = globalThis as unknown as Record<symbol, { dispatch: Dispatch } | undefined>;
  const dispatcher = 'onRequestStart' in handler ? (slots[SLOT] ?? slots[LEGACY_SLOT]) : slots[LEGACY_SLOT];
  if (dispatcher === undefined) throw new TypeError('This runtime keeps no global dispatcher where undici does: pass one.');
  return (request, to) => dispatcher.dispatch(request, to);
}
