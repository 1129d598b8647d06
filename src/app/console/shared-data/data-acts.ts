import type { DataEntry, DatumReport } from '../../../node/wire/cluster-snapshot.js';

/**
 * What the page offers for an entry: nothing where it belongs to its node (ephemeral), or where the page does not
 * know the name of the datum or the whole text that names the entry.
 */
export function actsOn(
  { name, kind, lifespan }: Pick<DatumReport, 'name' | 'kind' | 'lifespan'>,
  { key, scalar }: Pick<DataEntry, 'key' | 'scalar'>,
) {
  if (name === null || lifespan !== 'persistent' || scalar === null || (key ?? scalar).isShortened)
    return { mayChange: false, mayRemove: false };
  // The dialog's field has one line: it would join the others.
  const isEditable = !scalar.isShortened && !/[\r\n]/.test(scalar.value);
  return { mayChange: isEditable && (kind === 'scalar' || kind === 'map'), mayRemove: kind !== 'scalar' };
}
