import { isUtf8 } from 'node:buffer';
import { orAborted } from '../../core/base/abort.js';
import { ConfigError } from '../../core/base/errors.js';
import { barrier } from '../../zookeeper/recipes/barrier.js';
import { counter } from '../../zookeeper/recipes/counter.js';
import { type Queue, type QueueOptions, queue } from '../../zookeeper/recipes/queue/queue.js';
import type { TakenItem } from '../../zookeeper/recipes/queue/taken-item.js';
import { answer, complain, sayJson, sayValue } from '../kit/answer.js';
import { onConnecting, type ZooKeeperCall } from '../kit/call.js';
import { type HoldingOptions, waitTimeout } from '../kit/holding.js';
import { ExitCode, exitCodeOfSignal } from '../kit/io.js';

/** The options, as they are on the command line. */
interface RecipeCommandOptions extends Pick<HoldingOptions, 'try' | 'timeout'> {
  readonly add?: string;
  readonly count?: number;
  readonly simple?: boolean;
  readonly lockPath?: string;
}

type RecipeCall = ZooKeeperCall<RecipeCommandOptions>;

// What is wrong with a call is found out when the recipe is made, before there is a connection.

const barrierCommand =
  (act: 'set' | 'wait' | 'remove') =>
  (call: RecipeCall, path: string): Promise<number> => {
    const timeoutMs = waitTimeout(call.options);
    return onConnecting(call, async (zookeeper, signal) => {
      const gate = barrier(zookeeper, path);
      await zookeeper.whenConnected({ signal });
      await gate[act]({ signal, timeoutMs });
      const state = act === 'set' ? 'set' : 'open';
      return answer(call, { report: { path, state }, lines: [state] });
    });
  };

/** `nodelease zk barrier set PATH`. */
export const setBarrier = barrierCommand('set');
/** `nodelease zk barrier wait PATH`. */
export const waitForBarrier = barrierCommand('wait');
/** `nodelease zk barrier remove PATH`. */
export const removeBarrier = barrierCommand('remove');

/** `nodelease zk counter PATH [--add N]`: prints the value, the new one with `--add`. */
export function counterCommand(call: RecipeCall, path: string): Promise<number> {
  const { add } = call.options;
  if (add !== undefined && !/^[+-]?\d{1,19}$/.test(add))
    throw new ConfigError('--add', add, 'a whole number of 64 bits, with or without a sign');
  return onConnecting(call, async (zookeeper, signal) => {
    const shared = counter(zookeeper, path);
    await zookeeper.whenConnected({ signal });
    const read =
      add === undefined ? shared.get({ signal }) : shared.add(BigInt(add.replace('+', '')), { signal });
    // A number of JSON does not hold 64 bits in JavaScript.
    const value = String(await read);
    return answer(call, { report: { path, value }, lines: [value] });
  });
}

/**
 * `nodelease zk queue put PATH [ITEM]`: puts the item, or each line of standard input, and prints how many
 * that were.
 */
export function putCommand(call: RecipeCall, path: string, item?: string): Promise<number> {
  const { options, io } = call;
  return onConnecting(call, async (zookeeper, signal) => {
    const items = queue(zookeeper, path, formatOf(options));
    await zookeeper.whenConnected({ signal });
    const given = item === undefined ? linesOf(await orAborted(io.stdin(), signal)) : [Buffer.from(item)];
    let put = 0;
    try {
      for (const each of given) {
        await items.put(each, { signal });
        put += 1;
      }
    } finally {
      if (put < given.length && given.length > 1)
        complain(io, `${put} of ${given.length} items have been put`);
    }
    return answer(call, { report: { path, items: put }, lines: [`${put}`] });
  });
}

/**
 * `nodelease zk queue take PATH [-n K]`: prints each item as soon as it has it. With a lock path it removes
 * an item from the queue only once its reader has it: an item that was not taken over is put at the end
 * again.
 */
export function takeCommand(call: RecipeCall, path: string): Promise<number> {
  const { options, io } = call;
  const timeoutMs = waitTimeout(options);
  const { count = 1, lockPath } = options;
  return onConnecting(call, async (zookeeper, signal) => {
    const format = formatOf(options);
    await using items: Queue<Buffer | TakenItem> =
      lockPath === undefined
        ? queue(zookeeper, path, format)
        : queue(zookeeper, path, { ...format, lockPath });
    await zookeeper.whenConnected({ signal });
    for (let taken = 0; taken < count; taken += 1) {
      const item = await items.take({ timeoutMs, signal });
      const data = Buffer.isBuffer(item) ? item : item.data;
      if (options.json) sayJson(io, isUtf8(data) ? { item: `${data}` } : { base64: data.toString('base64') });
      else sayValue(io, data);
      const isRead = await io.taken();
      if (!Buffer.isBuffer(item)) await (isRead ? item.ack() : item.requeue());
      if (!isRead) return exitCodeOfSignal('SIGPIPE');
    }
    return ExitCode.ok;
  });
}

function formatOf({ simple }: RecipeCommandOptions): Pick<QueueOptions, 'format'> {
  return { format: simple ? 'simple' : 'distributed' };
}

/** Byte for byte, without the line feeds. */
function linesOf(input: Buffer): Buffer[] {
  const lines = input.toString('latin1').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line) => Buffer.from(line, 'latin1'));
}
