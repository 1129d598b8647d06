import { camundaFormat } from '../camunda/camunda-format.js';

/**
 * The formats in which other programs keep leases, in objects with the names of nodelease's own. Such objects
 * are read at most: no command writes them.
 */
export const FOREIGN_FORMATS = [camundaFormat];

export type ForeignFormat = (typeof FOREIGN_FORMATS)[number];

/** The foreign format of a lease object; undefined for every other object. The metadata may show it alone. */
export function foreignFormatOf(
  metadata: Readonly<Record<string, string>>,
  fields: Readonly<Record<string, unknown>> = {},
): ForeignFormat | undefined {
  return FOREIGN_FORMATS.find((format) => format.wrote(metadata, fields));
}
