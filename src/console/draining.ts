import type { WireCluster } from './wire.js';

/** How many holders are named; the others are counted. */
const NAMED = 3;

/** Who holds ids that the cluster has given up; undefined where nobody does, and where a server does not say. */
export function drainingText({ draining = [] }: Partial<Pick<WireCluster, 'draining'>>): string | undefined {
  if (draining.length === 0) return undefined;
  const named = draining.slice(0, NAMED).map(({ id, taskId }) => `${id} by ${taskId ?? 'a task without a name'}`);
  const more = draining.length - named.length;
  return `draining: ${named.join(', ')}${more > 0 ? ` and ${more.toLocaleString('en')} more` : ''}`;
}
