import { checkArguments, checked, having, maybe } from '../../../core/base/arguments.js';
import { ControlledAttempt, ExchangeController, LegacyAttempt } from './attempt-handlers.js';
import type { ControlledHandler, Dispatch, DispatchHandler, DispatchOptions } from './dispatch.js';
import { Exchange, type NewAttempt } from './exchange.js';
import type { InstancePicker } from './instance-target.js';
import { checkRoutingOptions, type RoutingOptions } from './routing-options.js';

/** A dispatcher of undici's, such as an `Agent`. */
export interface ComposableDispatcher {
  /** The same dispatcher with interceptors before it. */
  compose(...interceptors: never[]): unknown;
}

/** The type of `dispatcher` in the global `fetch`, by the types of Node in a project. */
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
 * - **Target.** Each request gets the scheme, address and port of an instance, and the path in its uriSpec
 *   before its own. The `Host` header and the TLS server name are the instance's, unless the request sets
 *   `Host`.
 * - **Which requests.** Those whose host is the service's name, see {@link RoutingOptions.hosts}, or that
 *   have no origin. Others pass through.
 * - **Errors.** The provider notes: no connection, a reset, no answer in time, an answer cut off, a status of
 *   {@link RoutingOptions.retryStatuses}. It does not note an abort by the caller, or an error of the
 *   caller's body.
 * - **Retries.** Another instance is tried until the caller has seen a response. It is always tried when no
 *   connection could be made. Otherwise the method must be idempotent (GET, HEAD, OPTIONS, PUT, DELETE,
 *   TRACE, or undici's `idempotent: true`), and it must be possible to send the body twice. A stream cannot
 *   be sent twice, and every body of `fetch` is one. Upgrades and CONNECT are tried once. There is no pause,
 *   and no instance is tried twice.
 * - **No instance.** `NoInstanceError`, for `fetch` as the `cause` of its `TypeError`. Await the provider's
 *   `ready` before the first request.
 *
 * The global `fetch` takes a dispatcher made of an `Agent` of undici 6 or 7. Its types accept one version of
 * undici only (TS2375, TS2322), so cast it: `{ dispatcher: dispatcher as unknown as FetchDispatcher }`.
 * Time-outs (undici: 10 s for a connection, 300 s for an answer), TLS, keep-alive and the number of
 * connections are the dispatcher's. An `Agent` of undici 6 keeps some memory for each origin that it has
 * seen; undici 7 does not.
 *
 * @param options `dispatcher`: an `Agent` or another dispatcher of undici 6 or 7. The result is of its kind;
 * closing it closes the given one
 * @throws ConfigError for an option that is out of its range
 */
export function serviceDispatcher<P, D extends ComposableDispatcher>(
  provider: InstancePicker<P>,
  options: RoutingOptions & { readonly dispatcher: D },
): ReturnType<D['compose']>;

/**
 * The same over the global dispatcher of the moment: Node's own, or the one that `setGlobalDispatcher` has
 * set. It has only the method `dispatch`, which is enough for `fetch`; there is nothing to close.
 */
export function serviceDispatcher<P>(
  provider: InstancePicker<P>,
  options?: RoutingOptions & { readonly dispatcher?: undefined },
): FetchDispatcher;

export function serviceDispatcher<P>(
  provider: InstancePicker<P>,
  options: RoutingOptions & { readonly dispatcher?: ComposableDispatcher | undefined } = {},
): unknown {
  const { dispatcher, ...routing } = checked(options, {
    dispatcher: maybe(having('a dispatcher of undici', 'compose')),
  });
  const interceptor = serviceInterceptor(provider, routing);
  return dispatcher === undefined
    ? { dispatch: interceptor(globalDispatch) }
    : dispatcher.compose(interceptor as never);
}

/**
 * The argument of `Dispatcher.compose` in all versions of undici. @typeParam D - the `dispatch` that is
 * wrapped
 */
export type ServiceInterceptor = <D extends (options: never, handler: never) => boolean>(dispatch: D) => D;

/**
 * The routing of {@link serviceDispatcher} as one interceptor of several:
 * `agent.compose(serviceInterceptor(provider), …)`. undici calls the last one first.
 *
 * @throws ConfigError for an option that is out of its range
 */
export function serviceInterceptor<P>(
  provider: InstancePicker<P>,
  options: RoutingOptions = {},
): ServiceInterceptor {
  checkArguments({ provider });
  const settings = checkRoutingOptions(provider.name, options);
  const intercept = (dispatch: Dispatch): Dispatch => {
    // undici counts the parameters of the returned function.
    return (request, handler) => {
      // undici reports errors of the request itself.
      if (!isRequest(request) || !settings.isMeant(request.origin)) return dispatch(request, handler);
      const exchange = (newAttempt: NewAttempt, fail: (error: Error) => void) =>
        new Exchange(provider, settings, dispatch, request, newAttempt, fail).start();
      // The dispatcher gets the kind of handler that the caller has: a pair that works without us works with
      // us.
      if (!isControlled(handler)) {
        const fail = (error: Error) => handler.onError?.(error);
        return exchange((...attempt) => new LegacyAttempt(...attempt, handler), fail);
      }
      const steering = new ExchangeController();
      const fail = (error: Error) => handler.onResponseError?.(steering.controller, error);
      return exchange((...attempt) => new ControlledAttempt(...attempt, steering, handler), fail);
    };
  };
  return intercept as unknown as ServiceInterceptor;
}

function isControlled(handler: DispatchHandler): handler is ControlledHandler {
  return 'onRequestStart' in handler && typeof handler.onRequestStart === 'function';
}

function isRequest(request: DispatchOptions): boolean {
  const { path, method }: Partial<DispatchOptions> = Object(request);
  return typeof path === 'string' && typeof method === 'string';
}

// Where undici keeps the dispatcher of the process: the first for versions with the handlers of undici 6, as
// Node up to 24 has, the second for the ones that know the new handlers only.
const LEGACY_SLOT = Symbol.for('undici.globalDispatcher.1');
const SLOT = Symbol.for('undici.globalDispatcher.2');

/**
 * Dispatches as the global `fetch` does by default, by the dispatcher of the moment that knows this kind of
 * handler.
 */
const globalDispatch: Dispatch = (request, handler) => {
  // Node loads its undici, and sets the dispatcher, at the first use of one of its classes.
  void Headers;
  // biome-ignore lint/style/noRestrictedGlobals: neither time nor chance: undici keeps its dispatcher nowhere else.
  const slots = globalThis as unknown as Record<symbol, { dispatch: Dispatch } | undefined>;
  const dispatcher = (isControlled(handler) ? slots[SLOT] : undefined) ?? slots[LEGACY_SLOT];
  if (dispatcher === undefined)
    throw new TypeError('This runtime keeps no global dispatcher where undici does: pass one.');
  return dispatcher.dispatch(request, handler);
};
