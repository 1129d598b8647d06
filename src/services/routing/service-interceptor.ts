import { ControlledAttempt, ExchangeController, LegacyAttempt } from './attempt-handlers.js';
import type { ControlledHandler, Dispatch, DispatchHandler, DispatchOptions } from './dispatch.js';
import { type Attempt, Exchange } from './exchange.js';
import type { InstancePicker } from './instance-target.js';
import { checkRoutingOptions, type RoutingOptions, type RoutingSettings } from './routing-options.js';

/**
 * What `Dispatcher.compose` of undici takes, whichever version of it.
 *
 * @typeParam D - the `dispatch` that is wrapped
 */
export type ServiceInterceptor = <D extends (options: never, handler: never) => boolean>(dispatch: D) => D;

/**
 * The routing of {@link serviceDispatcher} as an interceptor, for those who compose a dispatcher of several: `agent.compose(serviceInterceptor(provider), …)`.
 * undici calls the one that is named last first.
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
export function route<P>(
  provider: InstancePicker<P>,
  settings: RoutingSettings,
  base: Dispatch,
  request: DispatchOptions,
  handler: DispatchHandler,
): boolean {
  // What is wrong with the request itself is for undici to say.
  if (!isRequest(request) || !settings.isMeant(request.origin)) return base(request, handler);
  // The dispatcher gets the sort of handler that the caller has, so that whatever works together without us does so with us.
  if (isControlled(handler)) {
    const controller = new ExchangeController();
    const newHandler = (attempt: Attempt) => new ControlledAttempt(attempt, controller, handler);
    return new Exchange(provider, settings, base, request, newHandler, (error) => handler.onResponseError?.(controller, error)).start();
  }
  const newHandler = (attempt: Attempt) => new LegacyAttempt(attempt, handler);
  return new Exchange(provider, settings, base, request, newHandler, (error) => handler.onError?.(error)).start();
}

function isControlled(handler: DispatchHandler): handler is ControlledHandler {
  return 'onRequestStart' in handler && typeof handler.onRequestStart === 'function';
}

function isRequest(request: DispatchOptions): boolean {
  return typeof request === 'object' && request !== null && typeof request.path === 'string' && typeof request.method === 'string';
}
