import { camundaReader } from './camunda/camunda-reader.js';

/** A reader of each foreign format, by its name. */
export const foreignReaders = () => ({ camunda: camundaReader() });
