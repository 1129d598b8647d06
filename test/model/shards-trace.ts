/** A node id and its version. */
export interface Tenure {
  readonly id: number;
  readonly version: number;
}

/** What happens to the ownership of shards, as far as shards.pml has it. Epochs and tokens are those of the map. */
export type ShardAct = { /** True time, in milliseconds. */ readonly at: number } & (
  | { readonly kind: 'begins' | 'ends'; readonly tenure: Tenure }
  | {
      readonly kind: 'follows';
      readonly tenure: Tenure;
      readonly epoch: number;
      /** There was a later one when it was read. */
      readonly isOutdated?: boolean;
    }
  /** Its work begins, or has ended. */
  | {
      readonly kind: 'starts' | 'stops';
      readonly tenure: Tenure;
      readonly shard: number;
      readonly token: number;
    }
  /** The store has applied a write. The writer may be an operator. */
  | {
      readonly kind: 'writes';
      readonly tenure: Tenure | undefined;
      readonly epoch: number;
      readonly frozen?: boolean | undefined;
      readonly shards: readonly { readonly owner: Tenure | undefined; readonly token: number }[];
    }
);

/** From the first map of a series on. */
export interface ShardTrace {
  readonly acts: readonly ShardAct[];
  /** What ended the trace, since shards.pml does not have it; undefined where it is whole. */
  readonly leftOut?: string;
}

/** What happens to the map of shards from its beginning on, as far as shards-repair.pml has it. */
export type RepairAct =
  | ShardAct
  | ({ readonly at: number } & (
      | { /** The map is lost, or overwritten. */ readonly kind: 'loses' }
      /** cluster.json has another series, or says that the map is created. */
      | {
          readonly kind: 'draws';
          readonly floor: number;
          readonly created: boolean;
          /** How many node ids the cluster has had. */
          readonly peak: number;
        }
      | { readonly kind: 'creates' }
      /** A lease shows that its tenure takes part, and by which map; undefined for one that does no more. */
      | { readonly kind: 'marks'; readonly tenure: Tenure; readonly epoch: number | undefined }
      /** It has read cluster.json. */
      | { readonly kind: 'reads'; readonly tenure: Tenure }
      /** The task that has drawn the series of that floor has read a lease. */
      | { readonly kind: 'looks'; readonly floor: number; readonly id: number }
    ));
