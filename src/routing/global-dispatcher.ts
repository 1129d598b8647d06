import type { Dispatch, DispatchHandler } from './dispatch.js';

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
