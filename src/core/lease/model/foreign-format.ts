import { camundaFormat } from '../camunda/camunda-format.js';

/**
 * A format in which another program keeps leases, in objects with the names of nodelease's own. Such objects
 * are read at most: no command writes them.
 */
export interface ForeignFormat {
  /** Its name in reports. */
  readonly name: 'camunda';
  /** What a cluster of it is called, and a lease: with an article, as parts of sentences. */
  readonly cluster: string;
  readonly lease: string;
  /** The key of an object that is in every complete cluster of it, and in no other. */
  readonly marker: string;
  /** Whether a lease object is in this format, by its metadata and the fields of its body. */
  wrote(metadata: Readonly<Record<string, string>>, fields: Readonly<Record<string, unknown>>): boolean;
}

/** Every foreign format that is recognized, and so never written. */
export const FOREIGN_FORMATS: readonly ForeignFormat[] = [camundaFormat];

/** The foreign format of a lease object; undefined for every other object. The metadata may show it alone. */
export function foreignFormatOf(
  metadata: Readonly<Record<string, string>>,
  fields: Readonly<Record<string, unknown>> = {},
): ForeignFormat | undefined {
  return FOREIGN_FORMATS.find((format) => format.wrote(metadata, fields));
}
