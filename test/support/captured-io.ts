import { EventEmitter } from 'node:events';
import type { Io, Screen } from '../../src/app/kit/io.js';
import { seededRandom, VirtualClock } from './virtual-clock.js';

/** A command's surroundings as a test sees them. */
export interface CapturedIo extends Io {
  readonly clock: VirtualClock;
  readonly signals: EventEmitter;
  /** What was answered so far. */
  answer(): string;
  /** What was complained of so far. */
  complaints(): string;
}

/**
 * Surroundings that keep what a command says, with a clock that stands still. Without a screen, standard
 * output is a pipe.
 */
export function capturedIo(screen?: Screen, clock = new VirtualClock()): CapturedIo {
  const output = { stdout: '', stderr: '' };
  return {
    env: {},
    hostname: 'host',
    processId: 4711,
    containerSign: () => undefined,
    execArgv: [],
    clock,
    random: seededRandom(1),
    signals: new EventEmitter(),
    keyboard: false,
    onKey: () => () => undefined,
    stdin: async () => Buffer.alloc(0),
    stdout: (text) => {
      output.stdout += text;
    },
    taken: async () => true,
    written: async () => undefined,
    stderr: (text) => {
      output.stderr += text;
    },
    onWarning: () => undefined,
    logFormat: 'json',
    screen: () => screen,
    program: ['nodelease'],
    keepMemoryLean: () => undefined,
    answer: () => output.stdout,
    complaints: () => output.stderr,
  };
}
