import { afterEach, expect, it } from 'vitest';
import type { Dispatch, DispatchHandler, DispatchOptions } from './exchange.js';
import { serviceDispatcher } from './service-dispatcher.js';

const LEGACY_SLOT = Symbol.for('undici.globalDispatcher.1');
const SLOT = Symbol.for('undici.globalDispatcher.2');
const slots = globalThis as unknown as Record<symbol, unknown>;

void Headers;
const nodes = slots[LEGACY_SLOT];
const nodesNew = slots[SLOT];

// Some versions of undici define the slots so that they cannot be deleted.
afterEach(() => {
  slots[LEGACY_SLOT] = nodes;
  slots[SLOT] = nodesNew;
});

// Not meant for the service, so it passes through as it is.
const request: DispatchOptions = { origin: 'http://elsewhere', path: '/', method: 'GET' };
const { dispatch: globalDispatch } = serviceDispatcher({
  name: 'orders',
  pick: () => undefined,
  noteError: () => undefined,
}) as unknown as { dispatch: Dispatch };
const legacy: DispatchHandler = { onConnect() {} };
const controlled: DispatchHandler = { onRequestStart() {} };

function usedBy(handler: DispatchHandler): string[] {
  slots[SLOT] = undefined;
  const used: string[] = [];
  const dispatcher = (name: string) => ({ dispatch: () => used.push(name) > 0 });
  slots[LEGACY_SLOT] = dispatcher('legacy');
  globalDispatch(request, handler);
  slots[SLOT] = dispatcher('new');
  globalDispatch(request, handler);
  return used;
}

it('uses the current global dispatcher that understands the handler', () => {
  expect(usedBy(legacy)).toEqual(['legacy', 'legacy']);
  expect(usedBy(controlled)).toEqual(['legacy', 'new']);
});

it('finds the one of Node itself, and reports if there is none', () => {
  expect(nodes).toMatchObject({ dispatch: expect.any(Function) });
  slots[LEGACY_SLOT] = undefined;
  expect(() => globalDispatch(request, legacy)).toThrow(TypeError);
});
