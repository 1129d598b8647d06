/** A node id and its version. */
export interface Tenure {
  readonly id: number;
  readonly version: number;
}

/** What happens to the ownership of shards, as far as shards.pml has it. Epochs and tokens are those of the map. */
export type ShardAct = { /** True time, in milliseconds. */ readonly at: number } & (
  | { readonly kind: 'begins' | 'ends'; readonly tenure: Tenure }
  | { readonly kind: 'follows'; readonly tenure: Tenure; readonly epoch: number }
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
      readonly shards: readonly { readonly owner: Tenure | undefined; readonly token: number }[];
    }
);

/** From the first map of a series on. */
export interface ShardTrace {
  readonly acts: readonly ShardAct[];
  /** What ended the trace, since shards.pml does not have it; undefined where it is whole. */
  readonly leftOut?: string;
}
