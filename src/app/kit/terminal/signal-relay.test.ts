import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type ForwardedSignal, Interrupted, SignalRelay } from './signal-relay.js';

function scene() {
  const source = new EventEmitter();
  const relay = new SignalRelay(source);
  const received: ForwardedSignal[] = [];
  return { source, relay, received, receive: (signal: ForwardedSignal) => void received.push(signal) };
}

describe('the signals of the supervisor', () => {
  it('interrupt what goes on before there is a child, except for a change of the window', () => {
    const { source, relay } = scene();
    source.emit('SIGWINCH');
    expect(relay.interrupted.aborted).toBe(false);
    source.emit('SIGHUP');
    expect(relay.interrupted.reason).toBeInstanceOf(Interrupted);
    expect(relay.interrupted.reason).toMatchObject({ signal: 'SIGHUP' });
  });

  it('go to the receiver, and interrupt nothing, once there is one', () => {
    const { source, relay, received, receive } = scene();
    relay.handTo(receive);
    const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'];
    for (const signal of signals) source.emit(signal);
    expect(received).toEqual(signals);
    expect(relay.interrupted.aborted).toBe(false);
  });

  it('are not lost when they arrive just before the receiver does, and not given twice', () => {
    const { source, relay, received, receive } = scene();
    for (const signal of ['SIGHUP', 'SIGTERM', 'SIGHUP', 'SIGTERM']) source.emit(signal);
    relay.handTo(receive);
    relay.handTo(receive);
    expect(received).toEqual(['SIGHUP', 'SIGTERM']);
  });

  it('are the process’ own again in the end', () => {
    const { source, relay } = scene();
    relay.close();
    expect(source.eventNames()).toEqual([]);
  });
});
