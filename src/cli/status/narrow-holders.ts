import type { NodeStatus } from '../../lease/operate/inspect.js';
import type { NarrowHolder } from '../../lease/operate/scaling.js';
import { pluralize } from '../terminal/text.js';

/** How many are named; the others are counted. */
const NAMED = 8;
/** The width that every holder uses at the least, also one that does not say. */
const LEAST_WIDTH = 8;

/** Who holds which node id, and makes ids of how many bits: `0 (task-a, 8 bits), 7 (task-b, does not say)`. */
export function holdersText(holders: readonly NarrowHolder[]): string {
  const named = holders
    .slice(0, NAMED)
    .map(({ id, taskId, idWidth }) => `${id} (${taskId}, ${idWidth === undefined ? 'does not say' : pluralize(idWidth, 'bit')})`);
  const more = holders.length - named.length;
  return named.join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/**
 * One line on the live holders whose unique ids are narrower than they are to be, which is so only while the number of node ids grows;
 * undefined where there are none.
 */
export function narrowLine(nodes: readonly NodeStatus[], idWidth: number): string | undefined {
  const holders = nodes
    .filter((node) => node.state === 'held' && node.problem === undefined && (node.idWidth ?? LEAST_WIDTH) < idWidth)
    .map((node) => ({ id: node.id, taskId: node.taskId ?? '', idWidth: node.idWidth }));
  if (holders.length === 0) return undefined;
  return `growing: node ids are to take ${idWidth} bits in unique ids, ${pluralize(holders.length, 'holder')} not there yet: ${holdersText(holders)}`;
}
