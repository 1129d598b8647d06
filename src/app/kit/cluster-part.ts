/** What was read, or mended, of what the cluster has in its store next to the leases. */
export interface PartReport {
  /** The field of the report in the JSON of the command. */
  readonly name: string;
  readonly report: object;
  readonly status: 'ok' | 'warning' | 'fault';
  /** In one line. */
  readonly text: string;
}
