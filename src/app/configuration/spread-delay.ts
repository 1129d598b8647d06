const GOLDEN_RATIO = 0.618_033_988_749_895;

/** When a node has its time within `spreadMs`: the first ids are spread evenly, however many there are. */
export const spreadDelay = (nodeId: number, spreadMs: number) => spreadMs * ((nodeId * GOLDEN_RATIO) % 1);
