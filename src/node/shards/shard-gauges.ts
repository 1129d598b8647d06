/** What a node that takes part in shards adds to the metrics: the help of each gauge, by its name. */
export const SHARD_GAUGES = {
  nodelease_shards_owned: 'Shards that this node runs.',
  nodelease_shards_moving: 'Shards of this node that are to move.',
  nodelease_shards_orphaned: 'Shards of all that have no owner.',
  nodelease_shards_failing:
    'Shards of this node that do not run, or have not for long, since their last start has failed.',
  nodelease_shards_failed_starts: 'Starts that have failed here.',
  nodelease_shards_epoch_age_seconds: 'How long ago the map of shards was changed that this node follows.',
};

/** Their values now. */
export type ShardGauges = Readonly<Record<keyof typeof SHARD_GAUGES, number>>;
