import { ConfigError } from '../../../core/base/errors.js';
import { formatId, type IdFormat, parseId } from '../../../core/id/id-format.js';
import { cluster16, decodeId, type IdLayout, snowflake } from '../../../core/id/id-layout.js';
import { hexPair } from '../../../zookeeper/discovery/layout.js';
import { answer } from '../../kit/answer.js';
import type { Call } from '../../kit/call.js';

export type LayoutName = 'cluster16' | 'snowflake';

/** The options of `decode`, as they are on the command line. */
interface DecodeOptions {
  readonly format?: IdFormat;
  readonly width?: number;
  readonly layout?: LayoutName;
  readonly epoch?: number;
}

/** `nodelease decode ID --width W`: takes a unique id apart. Needs no store. */
export function decodeCommand(call: Omit<Call<DecodeOptions>, 'settings'>, text: string): number {
  const layout = layoutOf(call.options);
  const id = parseId(text, call.options.format);
  const { timeMs, node, group, index, nodeId, sequence } = decodeId(id, layout);
  const time = new Date(timeMs).toISOString();
  // A number of JSON does not hold the 64 bits of an id in JavaScript.
  const decimal = formatId(id, 'decimal');
  const lines = [
    ['time', `${time} (${timeMs} ms)`],
    ['node id', nodeId === undefined ? `none: ${node} is a number that is not leased` : `${nodeId}`],
    ['group', hexPair(group)],
    ['index', hexPair(index)],
    ['sequence', `${sequence}`],
  ].map(([name = '', value]) => `${name.padEnd(9)} ${value}`);
  return answer(call, {
    report: { id: decimal, time, timeMs, node, group, index, nodeId: nodeId ?? null, sequence },
    lines,
  });
}

function layoutOf({ layout = 'cluster16', width, epoch }: DecodeOptions): IdLayout {
  if (layout === 'snowflake' && width !== undefined)
    throw new ConfigError('--width', width, 'no --layout snowflake with it, which has 10 bits for the node');
  const fixed = fixedLayout(layout, epoch);
  if (fixed !== undefined) return fixed;
  // A wrong one would give a wrong node without a word.
  if (width === undefined)
    throw new ConfigError(
      '--width',
      undefined,
      'the bits that a node id had when the id was made, 8 to 16: nodelease status shows them (8 where the cluster never had more than 248 node ids)',
    );
  return cluster16(width);
}

/**
 * The layout of that name; undefined for `cluster16`, which has one for each width.
 *
 * @param epoch what the time of `snowflake` counts from. @default that of its inventor
 * @throws {ConfigError} when the layout has its own epoch
 */
export function fixedLayout(layout: LayoutName, epoch: number | undefined): IdLayout | undefined {
  if (layout === 'snowflake') return snowflake(epoch);
  if (epoch === undefined) return undefined;
  throw new ConfigError('--epoch', String(epoch), '--layout snowflake with it (cluster16 counts from 1970)');
}
