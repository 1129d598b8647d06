import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { newInstance } from '../instance/new-instance.js';
import type { ServiceInstance } from '../instance/service-instance.js';
import type {
  ControlledHandler,
  Dispatch,
  DispatchController,
  DispatchOptions,
  LegacyHandler,
} from './exchange.js';
import type { InstancePicker } from './instance-target.js';
import type { RoutingOptions } from './routing-options.js';
import { serviceInterceptor } from './service-dispatcher.js';

/** What the dispatcher was asked to do, for the test to play the servers' part. */
interface Sent {
  readonly options: DispatchOptions;
  readonly handler: Required<LegacyHandler>;
}

let sent: Sent[];
let noted: string[];
let events: string[];
let abort: ((reason?: Error) => void) | undefined;

beforeEach(() => {
  [sent, noted, events, abort] = [[], [], [], undefined];
});

const instances = ['a', 'b', 'c', 'd'].map((id, index) =>
  newInstance(
    { name: 'orders', id, address: '10.0.0.1', port: 8000 + index },
    { clock: new VirtualClock(), random: seededRandom(1) },
  ),
);

const picker: InstancePicker = {
  name: 'orders',
  pick: (except) => instances.find((instance) => !except?.has(instance)),
  noteError: ({ id }: ServiceInstance) => noted.push(id),
};

const caller: LegacyHandler = {
  onConnect: (cancel) => {
    events.push('connect');
    abort = cancel;
  },
  onHeaders: (status) => events.push(`status ${status}`) > 0,
  onComplete: () => events.push('complete'),
  onError: (error) => events.push(`error ${error.message}`),
};

function dispatch(
  request: Partial<DispatchOptions> = {},
  options: RoutingOptions = {},
  handler: LegacyHandler = caller,
): boolean {
  const base: Dispatch = (given, to) => {
    sent.push({ options: given, handler: to as Required<LegacyHandler> });
    return true;
  };
  return serviceInterceptor(picker, options)(base)(
    { origin: 'http://orders', path: '/', method: 'GET', ...request },
    handler,
  );
}

function attempt(index: number): Required<LegacyHandler> {
  const handler = sent[index]?.handler;
  if (handler === undefined) throw new Error(`there was no attempt ${index}`);
  return handler;
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

describe('an abort', () => {
  it('between two attempts ends the request at once, and the next attempt when it begins', () => {
    dispatch();
    attempt(0).onConnect(() => {});
    attempt(0).onError(failure('ECONNRESET'));
    abort?.(new Error('enough'));
    expect(events).toEqual(['connect', 'error enough']);
    const cancelled: unknown[] = [];
    attempt(1).onConnect((reason) => cancelled.push(reason?.message));
    attempt(1).onError(failure('UND_ERR_ABORTED'));
    expect([cancelled, events, noted, sent.length]).toEqual([
      ['enough'],
      ['connect', 'error enough'],
      ['a'],
      2,
    ]);
  });

  it('without a reason has one there', () => {
    dispatch();
    attempt(0).onConnect(() => {});
    attempt(0).onError(failure('ECONNRESET'));
    abort?.();
    expect(events).toEqual(['connect', 'error The request was aborted.']);
  });

  it('blames no instance, whatever the dispatcher says of it', () => {
    dispatch();
    attempt(0).onConnect(() => attempt(0).onError(failure('ECONNRESET')));
    abort?.();
    abort?.();
    expect([events, noted, sent.length]).toEqual([['connect', 'error ECONNRESET'], [], 1]);
  });

  it('after the end does nothing', () => {
    dispatch();
    let cancelled = 0;
    attempt(0).onConnect(() => {
      cancelled += 1;
    });
    attempt(0).onHeaders(200, [], () => {}, 'OK');
    attempt(0).onComplete([]);
    abort?.();
    expect([events, cancelled]).toEqual([['connect', 'status 200', 'complete'], 0]);
  });
});

describe('a caller', () => {
  it('is notified once that its request begins, and of one end', () => {
    dispatch();
    attempt(0).onConnect(() => {});
    attempt(0).onError(failure('ECONNRESET'));
    attempt(1).onConnect(() => {});
    attempt(0).onError(failure('ECONNRESET'));
    attempt(0).onHeaders(200, [], () => {}, 'OK');
    attempt(1).onHeaders(200, [], () => {}, 'OK');
    attempt(1).onComplete([]);
    attempt(1).onError(failure('ECONNRESET'));
    expect(events).toEqual(['connect', 'status 200', 'complete']);
  });

  it('does not receive an answer after which another instance is tried', () => {
    dispatch();
    let cancelled = 0;
    attempt(0).onConnect(() => {
      cancelled += 1;
      attempt(0).onError(failure('UND_ERR_ABORTED'));
    });
    expect(attempt(0).onHeaders(503, [], () => {}, 'Busy')).toBe(false);
    expect([events, cancelled, noted, sent.length]).toEqual([['connect'], 1, ['a'], 2]);
  });

  it('receives nothing of an attempt that was given up, though the dispatcher continues it', () => {
    const heard: string[] = [];
    const listening: LegacyHandler = {
      ...caller,
      onResponseStarted: () => heard.push('started'),
      onBodySent: () => heard.push('body sent'),
      onRequestSent: () => heard.push('request sent'),
      onData: (chunk) => heard.push(String(chunk)) > 0,
      onUpgrade: () => heard.push('upgrade'),
    };
    dispatch({}, {}, listening);
    attempt(0).onConnect(() => {});
    attempt(0).onHeaders(503, [], () => {}, 'Busy');
    const socket = new PassThrough();
    const everything = (index: number) => {
      attempt(index).onBodySent(4, 4);
      attempt(index).onRequestSent();
      attempt(index).onResponseStarted();
      attempt(index).onData(Buffer.from(`from ${index}`));
    };
    everything(0);
    attempt(0).onUpgrade(101, [], socket);
    expect([heard, socket.destroyed]).toEqual([[], true]);
    attempt(1).onConnect(() => {});
    everything(1);
    attempt(0).onComplete([]);
    everything(0);
    expect([heard, events]).toEqual([['body sent', 'request sent', 'started', 'from 1'], ['connect']]);
  });

  it('receives the same in the terms of undici 7', () => {
    const heard: string[] = [];
    const base: Dispatch = (_given, to) => controlled.push(to as Required<ControlledHandler>) > 0;
    const controlled: Required<ControlledHandler>[] = [];
    const listening: ControlledHandler = {
      onRequestStart: () => heard.push('start'),
      onResponseStarted: () => heard.push('started'),
      onResponseStart: (_, status) => heard.push(`status ${status}`),
      onResponseData: (_, chunk) => heard.push(String(chunk)),
      onRequestUpgrade: () => heard.push('upgrade'),
      onResponseError: (_, error) => heard.push(error.message),
    };
    const controller: DispatchController & Record<string, unknown> = {
      aborted: false,
      paused: false,
      reason: null,
      abort() {},
      pause() {},
      resume() {},
    };
    serviceInterceptor(picker)(base)({ origin: 'http://orders', path: '/', method: 'GET' }, listening);
    controlled[0]?.onRequestStart(controller, undefined);
    controlled[0]?.onResponseStart(controller, 503, {});
    const socket = new PassThrough();
    for (const each of [0, 1]) {
      controlled[each]?.onResponseStarted();
      controlled[each]?.onResponseData(controller, Buffer.from(`from ${each}`));
    }
    controlled[0]?.onRequestUpgrade(controller, 101, {}, socket);
    expect([heard, socket.destroyed]).toEqual([['start', 'started', 'from 1'], true]);
    controlled[1]?.onRequestUpgrade(controller, 101, {}, new PassThrough());
    controlled[1]?.onResponseError(controller, failure('ECONNRESET'));
    expect([heard.slice(3), noted]).toEqual([['upgrade'], ['a']]);
  });

  it('has the connection to itself after an upgrade: its later failure does not count', () => {
    let cancelled = 0;
    dispatch({ upgrade: 'echo' }, {}, { ...caller, onUpgrade: (status) => events.push(`upgrade ${status}`) });
    attempt(0).onConnect(() => {
      cancelled += 1;
    });
    attempt(0).onUpgrade(101, [], new PassThrough());
    attempt(0).onError(failure('ECONNRESET'));
    abort?.();
    expect([events, noted, cancelled, sent.length]).toEqual([['connect', 'upgrade 101'], [], 0, 1]);
  });

  it('may have received an interim response from an instance that then failed', () => {
    dispatch();
    attempt(0).onConnect(() => {});
    attempt(0).onHeaders(103, [], () => {}, 'Early Hints');
    attempt(0).onError(failure('ECONNRESET'));
    expect([events, sent.length]).toEqual([['connect', 'status 103'], 2]);
  });

  it('learns of an instance’s failure once, and the provider too', () => {
    dispatch({}, { maxAttempts: 1 });
    attempt(0).onConnect(() => {});
    attempt(0).onHeaders(503, [], () => {}, 'Busy');
    attempt(0).onError(failure('ECONNRESET'));
    expect([events, noted]).toEqual([['connect', 'status 503', 'error ECONNRESET'], ['a']]);
  });

  it('is notified when the dispatcher fails at the second attempt', () => {
    const base: Dispatch = (given, to) => {
      if (sent.length > 0) throw new Error('no more');
      sent.push({ options: given, handler: to as Required<LegacyHandler> });
      return true;
    };
    serviceInterceptor(picker)(base)({ origin: 'http://orders', path: '/', method: 'GET' }, caller);
    attempt(0).onError(failure('ECONNREFUSED'));
    expect(events).toEqual(['error no more']);
  });

  it('is notified of nothing by a dispatcher that returns nothing: each attempt has begun even so', () => {
    const base = ((given, to) => {
      sent.push({ options: given, handler: to as Required<LegacyHandler> });
    }) as Dispatch;
    serviceInterceptor(picker)(base)({ origin: 'http://orders', path: '/', method: 'GET' }, caller);
    expect([sent.length, events]).toEqual([1, []]);
    attempt(0).onError(failure('ECONNREFUSED'));
    expect([sent.length, events]).toEqual([2, []]);
  });
});

it('asks each instance once, and as many as allowed', () => {
  dispatch();
  for (let i = 0; i < 3; i += 1) attempt(i).onError(failure('ECONNREFUSED'));
  expect(sent.map(({ options }) => options.origin)).toEqual([
    'http://10.0.0.1:8000',
    'http://10.0.0.1:8001',
    'http://10.0.0.1:8002',
  ]);
  expect([noted, events]).toEqual([['a', 'b', 'c'], ['error ECONNREFUSED']]);
});

it('keeps the time-out that a request has, and sets its own otherwise', () => {
  dispatch({ headersTimeout: 5 }, { headersTimeoutMs: 700 });
  dispatch({}, { headersTimeoutMs: 700 });
  dispatch({ headersTimeout: null });
  expect(sent.map(({ options }) => options.headersTimeout)).toEqual([5, 700, null]);
});

it('leaves errors in a request to the dispatcher', () => {
  dispatch({ path: undefined as unknown as string });
  dispatch({ method: 7 as unknown as string });
  expect(sent.map(({ options }) => options.origin)).toEqual(['http://orders', 'http://orders']);
});

it.each<[RoutingOptions]>([
  [{ maxAttempts: 0 }],
  [{ maxAttempts: 1.5 }],
  [{ maxAttempts: 17 }],
  [{ retryStatuses: [404] }],
  [{ headersTimeoutMs: 0 }],
  [{ headersTimeoutMs: Number.NaN }],
])('refuses %j', (options) => {
  expect(() => serviceInterceptor(picker, options)).toThrow(ConfigError);
});

it('names the status that is none of a server', () => {
  expect(() => serviceInterceptor(picker, { retryStatuses: [502, 404] })).toThrow(
    'retryStatuses: expected status codes, 500 … 599, got 404',
  );
});
